/* palisade.h: write a Palisade plugin in C, for agents, each call in a sandbox of its own.
 *
 * In exactly one file, `#define PALISADE_IMPLEMENTATION` before the include; that file defines the
 * tools:
 *
 *     #define PALISADE_IMPLEMENTATION
 *     #include "palisade.h"
 *
 *     static void greet(const palisade_call *call, palisade_output *out) {
 *         palisade_text(out, "Hello, %s!", palisade_string(call, "name", "stranger"));
 *     }
 *
 *     PALISADE_TOOLS({
 *         .name = "greet",
 *         .description = "Greets somebody by name.",
 *         .side_effects = PALISADE_NONE,
 *         .input_schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}}}",
 *         .run = greet,
 *     })
 *
 * Memory is never freed: every call starts in a new sandbox. Strings of this header live until the
 * end of the call. On the author's machine, the same file compiles with any compiler, and
 * `palisade_test_call` calls a tool.
 */
#ifndef PALISADE_H
#define PALISADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PALISADE_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define PALISADE_PRINTF(text, first)
#endif

/* The most that a tool can do to the world, which the host enforces. */
typedef enum {
    PALISADE_NONE,    /* pure computation: sees no files */
    PALISADE_READ,    /* reads the workspace */
    PALISADE_WRITE,   /* changes files of the workspace */
    PALISADE_EXECUTE, /* runs programs */
    PALISADE_NETWORK, /* changes the state of other machines */
} palisade_side_effects;

/* The severity of a log message. */
typedef enum {
    PALISADE_TRACE,
    PALISADE_DEBUG,
    PALISADE_INFO,
    PALISADE_WARN,
    PALISADE_ERROR,
} palisade_level;

/* One call of one tool. All strings end with a zero; absent ones are NULL. */
typedef struct {
    const char *call_id;
    const char *session_id;
    const char *turn_id;
    const char *tool;
    const char *input;      /* a JSON object that conforms to the input schema */
    uint64_t remaining_ms;  /* the time of the call at its start */
    const char *context;    /* data of the caller, as JSON */
    const char *metadata;   /* a JSON object */
} palisade_call;

typedef struct palisade_output palisade_output;

/* The function of a tool. */
typedef void (*palisade_run)(const palisade_call *call, palisade_output *out);

/* The definition of a tool. A member that is left out has its default. */
typedef struct {
    const char *name;          /* ^[a-z][a-z0-9_]{0,63}$ */
    const char *title;         /* a name for people */
    const char *description;   /* for the model that decides when to use the tool */
    const char *input_schema;  /* JSON Schema of an object; by default one without members */
    const char *output_schema; /* with it, the output is exactly one JSON value */
    palisade_side_effects side_effects;
    bool idempotent;           /* calling twice leaves the same state as calling once */
    uint32_t timeout_ms;       /* can only lower the host's limit; 0 for that limit */
    const char *metadata;      /* a JSON object */
    palisade_run run;
} palisade_tool;

/* The tools of this plugin, defined by PALISADE_TOOLS. */
extern const palisade_tool palisade_tools[];
extern const size_t palisade_tool_count;

#define PALISADE_TOOLS(...)                                \
    const palisade_tool palisade_tools[] = {__VA_ARGS__};  \
    const size_t palisade_tool_count = sizeof palisade_tools / sizeof *palisade_tools;

/* --- Input: members of the object by name. A member of another type counts as absent. --- */

const char *palisade_string(const palisade_call *call, const char *name, const char *absent);
double palisade_number(const palisade_call *call, const char *name, double absent);
int64_t palisade_integer(const palisade_call *call, const char *name, int64_t absent);
bool palisade_boolean(const palisade_call *call, const char *name, bool absent);
/* The JSON text of a member, such as an array or an object, or NULL. */
const char *palisade_member(const palisade_call *call, const char *name);
/* The JSON text of a member of `object`, or of an element of `array`; NULL if there is none. */
const char *palisade_json_member(const char *object, const char *name);
const char *palisade_json_element(const char *array, size_t index);
/* The string that a JSON text is, without its escapes; NULL if it is something else. */
const char *palisade_json_string(const char *json);

/* --- Output: blocks in order. --- */

void palisade_text(palisade_output *out, const char *format, ...) PALISADE_PRINTF(2, 3);
/* One JSON value. Pass strings through palisade_quote. */
void palisade_json(palisade_output *out, const char *format, ...) PALISADE_PRINTF(2, 3);
void palisade_image(palisade_output *out, const char *mime, const void *data, size_t size);
void palisade_audio(palisade_output *out, const char *mime, const void *data, size_t size);
void palisade_resource(palisade_output *out, const char *uri, const char *mime, const char *text);
void palisade_link(palisade_output *out, const char *uri, const char *name, const char *mime);
/* Records a file that the tool changed, relative to the workspace. */
void palisade_modified(palisade_output *out, const char *path);
/* Marks the outcome as a failure for the model, such as failing tests. The tool did its work. */
void palisade_failure(palisade_output *out);
/* A JSON object for the program that embeds the host. The model never sees it. */
void palisade_metadata(palisade_output *out, const char *json);

/* --- Errors: the tool could not do its work. The first one counts, and blocks are dropped. --- */

void palisade_failed(palisade_output *out, const char *format, ...) PALISADE_PRINTF(2, 3);
void palisade_not_found(palisade_output *out, const char *format, ...) PALISADE_PRINTF(2, 3);
void palisade_denied(palisade_output *out, const char *format, ...) PALISADE_PRINTF(2, 3);
void palisade_invalid(palisade_output *out, const char *field, const char *format, ...)
    PALISADE_PRINTF(3, 4);
void palisade_cancelled_error(palisade_output *out);
/* The error in `errno`, after a file operation on this path. */
void palisade_file_error(palisade_output *out, const char *path);

/* --- The host: none of these fails. --- */

void palisade_log(palisade_level level, const char *format, ...) PALISADE_PRINTF(2, 3);
/* `total` may be negative for unknown, and `message` NULL. */
void palisade_progress(double done, double total, const char *message);
/* Shows a part of the output before the call has ended. The model reads only the result. */
void palisade_emit(const char *chunk);
/* True if the caller wants the call to stop: clean up and call palisade_cancelled_error. */
bool palisade_cancelled(void);

/* --- Helpers. --- */

/* Memory that is never freed. The call ends with an error if there is none. */
void *palisade_alloc(size_t size);
char *palisade_format(const char *format, ...) PALISADE_PRINTF(1, 2);
/* A JSON string with quotes and escapes. */
char *palisade_quote(const char *text);
/* A whole file with a zero after it. NULL with `errno` set if it cannot be read. */
char *palisade_read_file(const char *path, size_t *size);
/* Writes a file in place of an existing one. False with `errno` set if it cannot be written. */
bool palisade_write_file(const char *path, const void *data, size_t size);

#ifndef __wasm__
/* --- Tests, on the author's machine. --- */

/* The result of a call. Lists of text have a line for each entry. */
typedef struct {
    const char *error;     /* NULL, "invalid-input", "not-found", "permission-denied", "failed" or
                              "cancelled" */
    const char *message;   /* of the error */
    const char *field;     /* of an invalid input */
    const char *text;      /* the text blocks, joined with newlines */
    const char *json;      /* the first JSON block, or NULL */
    const void *data;      /* the bytes of the first image or audio, or NULL */
    size_t size;
    bool success;
    const char *modified;  /* the changed files */
    const char *log;       /* "info: message" */
    const char *progress;  /* "1/2 message" */
    const char *emitted;
} palisade_test_result;

/* Calls a tool. Its files are those of the working directory. */
palisade_test_result palisade_test_call(const char *tool, const char *input);
/* Makes the next calls appear cancelled after this number of polls; negative for never. */
void palisade_test_cancel_after(int polls);
#endif

#ifdef __cplusplus
}
#endif
#endif /* PALISADE_H */

#if defined(PALISADE_IMPLEMENTATION) && !defined(PALISADE_IMPLEMENTED)
#define PALISADE_IMPLEMENTED
#include "palisade_implementation.h"
#endif
