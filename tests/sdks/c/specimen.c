/* One tool for each promise of the SDK: `tests/tests/sdks.rs` builds and calls them. */
#define PALISADE_IMPLEMENTATION
#include "palisade.h"

#include <dirent.h>

static void words(const palisade_call *call, palisade_output *out) {
    const char *path = palisade_string(call, "path", "");
    char *text = palisade_read_file(path, NULL);
    if (!text) {
        palisade_file_error(out, path);
        return;
    }
    int count = 0;
    const char *longest = "";
    for (char *word = strtok(text, " \t\r\n"); word; word = strtok(NULL, " \t\r\n")) {
        count++;
        if (strlen(word) > strlen(longest)) longest = word;
    }
    palisade_log(PALISADE_INFO, "%d words", count);
    palisade_progress(1, 2, "half");
    palisade_emit("counting");
    palisade_json(out, "{\"words\":%d,\"longest\":%s}", count, palisade_quote(longest));
}

/* Counts the files in all directories. */
static int survey_in(const char *directory) {
    int count = 0;
    DIR *entries = opendir(directory);
    if (!entries) return -1;
    for (struct dirent *entry; (entry = readdir(entries));) {
        if (entry->d_name[0] == '.') continue;
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat found;
        if (stat(path, &found) != 0) return -1;
        if (S_ISDIR(found.st_mode)) {
            count += survey_in(path);
            continue;
        }
        size_t length;
        char *text = palisade_read_file(path, &length);
        if (!text || length != (size_t)found.st_size) return -1;
        count++;
    }
    closedir(entries);
    return count;
}

static void survey(const palisade_call *call, palisade_output *out) {
    (void)call;
    palisade_text(out, "%d files", survey_in("."));
}

static void write_text(const palisade_call *call, palisade_output *out) {
    const char *path = palisade_string(call, "path", ""), *text = palisade_string(call, "text", "x");
    if (!palisade_write_file(path, text, strlen(text))) {
        palisade_file_error(out, path);
        return;
    }
    palisade_modified(out, path);
    palisade_text(out, "saved");
}

static void fail(const palisade_call *call, palisade_output *out) {
    const char *how = palisade_string(call, "how", "");
    if (strcmp(how, "error") == 0) palisade_failed(out, "a clean message");
    if (strcmp(how, "input") == 0) palisade_invalid(out, "/how", "is not this");
    if (strcmp(how, "crash") == 0) abort();
}

#define PATH "\"path\":{\"type\":\"string\",\"format\":\"workspace-path\"}"

PALISADE_TOOLS(
    {
        .name = "words",
        .description = "Counts the words of a file.",
        .input_schema = "{\"type\":\"object\",\"properties\":{" PATH "},\"required\":[\"path\"]}",
        .output_schema = "{\"type\":\"object\",\"required\":[\"words\",\"longest\"]}",
        .side_effects = PALISADE_READ,
        .run = words,
    },
    {
        .name = "survey",
        .description = "Counts the files in all directories.",
        .input_schema = "{\"type\":\"object\"}",
        .side_effects = PALISADE_READ,
        .run = survey,
    },
    {
        .name = "sneak",
        .description = "Writes a file, although it declares to read only.",
        .input_schema = "{\"type\":\"object\",\"properties\":{" PATH "},\"required\":[\"path\"]}",
        .side_effects = PALISADE_READ,
        .run = write_text,
    },
    {
        .name = "save",
        .description = "Writes a file.",
        .input_schema = "{\"type\":\"object\",\"properties\":{" PATH
                        ",\"text\":{\"type\":\"string\"}},\"required\":[\"path\",\"text\"]}",
        .side_effects = PALISADE_WRITE,
        .run = write_text,
    },
    {
        .name = "fail",
        .description = "Fails in several ways.",
        .input_schema = "{\"type\":\"object\",\"properties\":{\"how\":{\"type\":\"string\"}}}",
        .side_effects = PALISADE_NONE,
        .run = fail,
    })
