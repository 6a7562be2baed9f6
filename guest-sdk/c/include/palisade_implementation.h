/* The implementation of palisade.h, which includes this file. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The canonical form of the contract, as `wit/types.wit` declares it. On wasm32, the layout of
 * these structures is that of the component model's ABI. */
typedef struct { const char *ptr; size_t len; } palisade__str;
typedef struct { uint8_t is_some; palisade__str value; } palisade__option_str;
typedef struct { uint8_t is_some; uint32_t value; } palisade__option_u32;

typedef struct {
    palisade__str name;
    palisade__option_str title;
    palisade__str description;
    palisade__str input_schema;
    palisade__option_str output_schema;
    uint8_t side_effects;
    uint8_t idempotent;
    palisade__option_u32 timeout_ms;
    palisade__str metadata;
} palisade__definition;

enum { PALISADE__TEXT, PALISADE__JSON, PALISADE__IMAGE, PALISADE__AUDIO, PALISADE__RESOURCE,
       PALISADE__LINK };

typedef struct {
    uint8_t tag;
    union {
        palisade__str text;
        struct { palisade__str mime, data; } media;
        struct {
            palisade__str uri;
            palisade__option_str mime;
            struct { uint8_t tag; palisade__str value; } body;
        } resource;
        struct { palisade__str uri, name; palisade__option_str mime; } link;
    } as;
} palisade__content;

enum { PALISADE__INVALID, PALISADE__NOT_FOUND, PALISADE__DENIED, PALISADE__FAILED,
       PALISADE__CANCELLED };

typedef struct {
    uint8_t tag;
    struct { palisade__str first, second; } as;
} palisade__error;

struct palisade_output {
    palisade__content *content;
    size_t content_count;
    palisade__str *modified;
    size_t modified_count;
    const char *metadata;
    bool is_failure;
    bool has_error;
    palisade__error error;
};

/* The host: imports of the component, or the record of a test. */
#ifdef __wasm__
#define PALISADE__IMPORT(name)                                                    \
    __attribute__((import_module("palisade:tool/host@0.1.0"), import_name(name)))
PALISADE__IMPORT("log") void palisade__log(int32_t level, const char *text, size_t size);
PALISADE__IMPORT("progress")
void palisade__progress(double done, int32_t has_total, double total, int32_t has_message,
                        const char *message, size_t size);
PALISADE__IMPORT("emit") void palisade__emit(const char *chunk, size_t size);
PALISADE__IMPORT("cancelled") int32_t palisade__cancelled(void);
#else
static void palisade__log(int32_t level, const char *text, size_t size);
static void palisade__progress(double done, int32_t has_total, double total, int32_t has_message,
                               const char *message, size_t size);
static void palisade__emit(const char *chunk, size_t size);
static int32_t palisade__cancelled(void);
#endif

/* --- Memory and text --- */

void *palisade_alloc(size_t size) {
    void *memory = malloc(size ? size : 1);
    if (!memory) abort(); /* the host reports that the memory is exhausted */
    return memory;
}

/* The length of the UTF-8 character that begins here, or 0 if none does (RFC 3629, section 4). */
static size_t palisade__character(const unsigned char *at) {
    size_t size = at[0] < 0x80 ? 1 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if ((at[0] >= 0x80 && at[0] < 0xc2) || at[0] > 0xf4) return 0;
    unsigned char least = at[0] == 0xe0 ? 0xa0 : at[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char most = at[0] == 0xed ? 0x9f : at[0] == 0xf4 ? 0x8f : 0xbf;
    if (size > 1 && (at[1] < least || at[1] > most)) return 0;
    for (size_t next = 2; next < size; next++) {
        if ((at[next] & 0xc0) != 0x80) return 0;
    }
    return size;
}

/* The text with U+FFFD for each byte that is no UTF-8: the host ends a call with other text. */
static const char *palisade__valid(const char *text) {
    const unsigned char *from = (const unsigned char *)text;
    size_t size;
    while (*from && (size = palisade__character(from))) from += size;
    if (!*from) return text;
    char *valid = palisade_alloc(strlen(text) * 3 + 1), *to = valid;
    for (from = (const unsigned char *)text; *from; from += size ? size : 1) {
        size = palisade__character(from);
        memcpy(to, size ? (const char *)from : "\xEF\xBF\xBD", size ? size : 3);
        to += size ? size : 3;
    }
    *to = 0;
    return valid;
}

static palisade__str palisade__of(const char *text) {
    const char *valid = palisade__valid(text ? text : "");
    palisade__str result = {valid, strlen(valid)};
    return result;
}

static palisade__option_str palisade__maybe(const char *text) {
    palisade__option_str result = {text != NULL, palisade__of(text)};
    return result;
}

static char *palisade__vformat(const char *format, va_list values) {
    va_list again;
    va_copy(again, values);
    int size = vsnprintf(NULL, 0, format, values);
    char *text = palisade_alloc(size > 0 ? (size_t)size + 1 : 1);
    text[0] = 0;
    if (size > 0) vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text;
}

#define PALISADE__FORMATTED(text, format) \
    va_list values;                       \
    va_start(values, format);             \
    char *text = palisade__vformat(format, values); \
    va_end(values)

char *palisade_format(const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    return text;
}

char *palisade_quote(const char *text) {
    char *quoted = palisade_alloc(strlen(text) * 6 + 3), *to = quoted;
    *to++ = '"';
    for (const unsigned char *from = (const unsigned char *)text; *from; from++) {
        if (*from == '"' || *from == '\\') {
            *to++ = '\\';
            *to++ = (char)*from;
        } else if (*from < 0x20) {
            to += sprintf(to, "\\u%04x", *from);
        } else {
            *to++ = (char)*from;
        }
    }
    *to++ = '"';
    *to = 0;
    return quoted;
}

char *palisade_read_file(const char *path, size_t *size) {
    struct stat about;
    bool is_known = stat(path, &about) == 0;
    if (is_known && S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return NULL;
    }
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    /* One byte for the end of the text, and one to see that the file has ended. The size is that of
       a moment, and may be larger than all memory. */
    bool is_small = is_known && about.st_size >= 0 && about.st_size < 64 * 1024 * 1024;
    size_t length = 0, room = is_small ? (size_t)about.st_size + 2 : 64 * 1024;
    char *data = palisade_alloc(room);
    for (size_t got; (got = fread(data + length, 1, room - 1 - length, file)) > 0;) {
        length += got;
        if (length < room - 1) continue;
        char *larger = realloc(data, room *= 2);
        if (!larger) abort();
        data = larger;
    }
    bool is_whole = !ferror(file);
    fclose(file);
    if (!is_whole) return NULL;
    data[length] = 0;
    if (size) *size = length;
    return data;
}

bool palisade_write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file) return false;
    bool is_whole = fwrite(data, 1, size, file) == size;
    return fclose(file) == 0 && is_whole;
}

/* --- JSON: the host passes canonical text, and a value of a member may be anything. --- */

static const char *palisade__space(const char *at) {
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r') at++;
    return at;
}

/* Returns the end of a value. Strings are skipped, and brackets counted. */
static const char *palisade__end(const char *at) {
    int depth = 0;
    for (at = palisade__space(at); *at; at++) {
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++)
                if (*at == '\\' && at[1]) at++;
            if (!*at) return at;
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (*at == '}' || *at == ']') {
            if (depth == 0) return at;
            depth--;
        } else if (*at == ',' && depth == 0) {
            return at;
        }
        if (depth == 0 && (*at == '"' || *at == '}' || *at == ']')) return at + 1;
    }
    return at;
}

static char *palisade__slice(const char *from, const char *to) {
    while (to > from && strchr(" \t\r\n", to[-1])) to--;
    char *text = palisade_alloc((size_t)(to - from) + 1);
    memcpy(text, from, (size_t)(to - from));
    text[to - from] = 0;
    return text;
}

static int palisade__hex(const char *at) {
    int value = 0;
    for (int digit = 0; digit < 4; digit++) {
        char c = at[digit];
        int add = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (add < 0) return -1;
        value = value * 16 + add;
    }
    return value;
}

static char *palisade__utf8(char *to, unsigned code) {
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

const char *palisade_json_string(const char *json) {
    const char *at = json ? palisade__space(json) : "";
    if (*at++ != '"') return NULL;
    char *text = palisade_alloc(strlen(at) + 1), *to = text;
    for (; *at && *at != '"'; at++) {
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
        const char *name = *++at ? strchr(names, *at) : NULL;
        if (*at == 'u') {
            int code = palisade__hex(at + 1);
            /* A zero would end the string before its end. */
            if (code <= 0) return NULL;
            at += 4;
            if (code >= 0xd800 && code < 0xdc00 && at[1] == '\\' && at[2] == 'u') {
                int low = palisade__hex(at + 3);
                if (low >= 0xdc00 && low < 0xe000) {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    at += 6;
                }
            }
            /* Half of a pair has no form in UTF-8. */
            to = palisade__utf8(to, code >= 0xd800 && code < 0xe000 ? 0xfffd : (unsigned)code);
        } else if (name) {
            *to++ = values[name - names];
        } else if (*at) {
            *to++ = *at;
        } else {
            return NULL;
        }
    }
    if (*at != '"') return NULL;
    *to = 0;
    return text;
}

const char *palisade_json_member(const char *object, const char *name) {
    const char *at = object ? palisade__space(object) : "";
    if (*at != '{') return NULL;
    for (at = palisade__space(at + 1); *at == '"'; at = palisade__space(at + 1)) {
        const char *key = palisade_json_string(at);
        const char *value = palisade__space(palisade__end(at));
        if (*value != ':') return NULL;
        value = palisade__space(value + 1);
        const char *end = palisade__end(value);
        if (key && strcmp(key, name) == 0) return palisade__slice(value, end);
        at = palisade__space(end);
        if (*at != ',') return NULL;
    }
    return NULL;
}

const char *palisade_json_element(const char *array, size_t index) {
    const char *at = array ? palisade__space(array) : "";
    if (*at != '[') return NULL;
    for (at = palisade__space(at + 1); *at && *at != ']'; at = palisade__space(at + 1)) {
        const char *end = palisade__end(at);
        if (index-- == 0) return palisade__slice(at, end);
        at = palisade__space(end);
        if (*at != ',') return NULL;
    }
    return NULL;
}

const char *palisade_member(const palisade_call *call, const char *name) {
    return palisade_json_member(call->input, name);
}

const char *palisade_string(const palisade_call *call, const char *name, const char *absent) {
    const char *text = palisade_json_string(palisade_member(call, name));
    return text ? text : absent;
}

double palisade_number(const palisade_call *call, const char *name, double absent) {
    const char *json = palisade_member(call, name);
    if (!json || (*json != '-' && (*json < '0' || *json > '9'))) return absent;
    return strtod(json, NULL);
}

int64_t palisade_integer(const palisade_call *call, const char *name, int64_t absent) {
    const char *json = palisade_member(call, name);
    if (!json || (*json != '-' && (*json < '0' || *json > '9'))) return absent;
    if (!strpbrk(json, ".eE")) return strtoll(json, NULL, 10); /* The nearest that fits. */
    double number = strtod(json, NULL);
    if (number >= 9223372036854775808.0) return INT64_MAX;
    return number < -9223372036854775808.0 ? INT64_MIN : (int64_t)number;
}

bool palisade_boolean(const palisade_call *call, const char *name, bool absent) {
    const char *json = palisade_member(call, name);
    if (!json) return absent;
    return strcmp(json, "true") == 0 ? true : strcmp(json, "false") == 0 ? false : absent;
}

/* --- Output --- */

static palisade__content *palisade__add(palisade_output *out, uint8_t tag) {
    size_t size = (out->content_count + 1) * sizeof *out->content;
    palisade__content *content = realloc(out->content, size);
    if (!content) abort();
    out->content = content;
    palisade__content *block = &content[out->content_count++];
    memset(block, 0, sizeof *block);
    block->tag = tag;
    return block;
}

void palisade_text(palisade_output *out, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__add(out, PALISADE__TEXT)->as.text = palisade__of(text);
}

void palisade_json(palisade_output *out, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__add(out, PALISADE__JSON)->as.text = palisade__of(text);
}

static void palisade__media(palisade_output *out, uint8_t tag, const char *mime, const void *data,
                            size_t size) {
    palisade__content *block = palisade__add(out, tag);
    block->as.media.mime = palisade__of(mime);
    block->as.media.data.ptr = data;
    block->as.media.data.len = size;
}

void palisade_image(palisade_output *out, const char *mime, const void *data, size_t size) {
    palisade__media(out, PALISADE__IMAGE, mime, data, size);
}

void palisade_audio(palisade_output *out, const char *mime, const void *data, size_t size) {
    palisade__media(out, PALISADE__AUDIO, mime, data, size);
}

void palisade_resource(palisade_output *out, const char *uri, const char *mime, const char *text) {
    palisade__content *block = palisade__add(out, PALISADE__RESOURCE);
    block->as.resource.uri = palisade__of(uri);
    block->as.resource.mime = palisade__maybe(mime);
    block->as.resource.body.value = palisade__of(text);
}

void palisade_link(palisade_output *out, const char *uri, const char *name, const char *mime) {
    palisade__content *block = palisade__add(out, PALISADE__LINK);
    block->as.link.uri = palisade__of(uri);
    block->as.link.name = palisade__of(name);
    block->as.link.mime = palisade__maybe(mime);
}

void palisade_modified(palisade_output *out, const char *path) {
    palisade__str *files = realloc(out->modified, (out->modified_count + 1) * sizeof *files);
    if (!files) abort();
    out->modified = files;
    files[out->modified_count++] = palisade__of(palisade_format("%s", path));
}

void palisade_failure(palisade_output *out) { out->is_failure = true; }

void palisade_metadata(palisade_output *out, const char *json) { out->metadata = json; }

static void palisade__fail(palisade_output *out, uint8_t tag, const char *first,
                           const char *second) {
    if (out->has_error) return;
    out->has_error = true;
    out->error.tag = tag;
    out->error.as.first = palisade__of(first);
    out->error.as.second = palisade__of(second);
}

void palisade_failed(palisade_output *out, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__fail(out, PALISADE__FAILED, text, NULL);
}

void palisade_not_found(palisade_output *out, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__fail(out, PALISADE__NOT_FOUND, text, NULL);
}

void palisade_denied(palisade_output *out, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__fail(out, PALISADE__DENIED, text, NULL);
}

void palisade_invalid(palisade_output *out, const char *field, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__fail(out, PALISADE__INVALID, field, text);
}

void palisade_cancelled_error(palisade_output *out) {
    palisade__fail(out, PALISADE__CANCELLED, NULL, NULL);
}

void palisade_file_error(palisade_output *out, const char *path) {
    char *message = palisade_format("%s: %s", path, strerror(errno));
    bool is_denied = errno == EACCES || errno == EPERM || errno == EROFS;
#ifdef ENOTCAPABLE
    is_denied = is_denied || errno == ENOTCAPABLE;
#endif
    uint8_t other = is_denied ? PALISADE__DENIED : PALISADE__FAILED;
    palisade__fail(out, errno == ENOENT ? PALISADE__NOT_FOUND : other, message, NULL);
}

/* --- The host --- */

void palisade_log(palisade_level level, const char *format, ...) {
    PALISADE__FORMATTED(text, format);
    palisade__str valid = palisade__of(text);
    palisade__log((int32_t)level, valid.ptr, valid.len);
}

void palisade_progress(double done, double total, const char *message) {
    palisade__str valid = palisade__of(message);
    palisade__progress(done, total >= 0, total, message != NULL, valid.ptr, valid.len);
}

void palisade_emit(const char *chunk) {
    palisade__str valid = palisade__of(chunk);
    palisade__emit(valid.ptr, valid.len);
}

bool palisade_cancelled(void) { return palisade__cancelled() != 0; }

/* True if a text of the input has the character U+0000, which would end a string in C too early. */
static bool palisade__has_zero(const char *json) {
    for (const char *at = json; (at = strstr(at, "\\u0000")); at++) {
        const char *escape = at;
        while (escape > json && escape[-1] == '\\') escape--;
        if ((at - escape) % 2 == 0) return true;
    }
    return false;
}

static palisade_output palisade__execute(const palisade_call *call) {
    palisade_output out;
    memset(&out, 0, sizeof out);
    if (palisade__has_zero(call->input)) {
        palisade_invalid(&out, "", "the input has the character U+0000, which is not accepted");
        return out;
    }
    for (size_t at = 0; at < palisade_tool_count; at++) {
        if (strcmp(palisade_tools[at].name, call->tool) == 0) {
            palisade_tools[at].run(call, &out);
            return out;
        }
    }
    palisade_not_found(&out, "this plugin has no tool `%s`", call->tool);
    return out;
}

#ifdef __wasm__
/* --- The component: exports under the names of the contract. --- */

#define PALISADE__EXPORT(name) __attribute__((export_name(name)))

/* Memory for what the host passes. */
PALISADE__EXPORT("cabi_realloc")
void *palisade__realloc(void *old, size_t old_size, size_t align, size_t size) {
    (void)old_size;
    if (size == 0) return (void *)align;
    void *memory = realloc(old, size);
    if (!memory) abort();
    return memory;
}

typedef struct { palisade__definition *ptr; size_t len; } palisade__definitions;

PALISADE__EXPORT("palisade:tool/tool@0.1.0#definitions")
palisade__definitions *palisade__describe(void) {
    static palisade__definitions all;
    all.len = palisade_tool_count;
    all.ptr = palisade_alloc(all.len * sizeof *all.ptr);
    memset(all.ptr, 0, all.len * sizeof *all.ptr);
    for (size_t at = 0; at < all.len; at++) {
        const palisade_tool *tool = &palisade_tools[at];
        palisade__definition *definition = &all.ptr[at];
        const char *schema = tool->input_schema;
        definition->name = palisade__of(tool->name);
        definition->title = palisade__maybe(tool->title);
        definition->description = palisade__of(tool->description);
        definition->input_schema =
            palisade__of(schema ? schema : "{\"type\":\"object\",\"properties\":{}}");
        definition->output_schema = palisade__maybe(tool->output_schema);
        definition->side_effects = (uint8_t)tool->side_effects;
        definition->idempotent = tool->idempotent;
        definition->timeout_ms.is_some = tool->timeout_ms != 0;
        definition->timeout_ms.value = tool->timeout_ms;
        definition->metadata = palisade__of(tool->metadata);
    }
    return &all;
}

typedef struct {
    palisade__str call_id;
    palisade__option_str session_id, turn_id;
    palisade__str tool, input;
    uint64_t remaining_ms;
    palisade__str context, metadata;
} palisade__call;

typedef struct {
    uint8_t is_error;
    union {
        struct {
            palisade__content *content;
            size_t content_count;
            uint8_t success;
            palisade__str metadata;
            palisade__str *modified;
            size_t modified_count;
            palisade__option_str command;
        } output;
        palisade__error error;
    } as;
} palisade__result;

static const char *palisade__text_of(palisade__str text) {
    return palisade__slice(text.ptr, text.ptr + text.len);
}

static const char *palisade__text_or_null(palisade__option_str text) {
    return text.is_some ? palisade__text_of(text.value) : NULL;
}

PALISADE__EXPORT("palisade:tool/tool@0.1.0#execute")
palisade__result *palisade__run(const palisade__call *given) {
    static palisade__result result;
    palisade_call call = {
        palisade__text_of(given->call_id),     palisade__text_or_null(given->session_id),
        palisade__text_or_null(given->turn_id), palisade__text_of(given->tool),
        palisade__text_of(given->input),       given->remaining_ms,
        palisade__text_of(given->context),     palisade__text_of(given->metadata),
    };
    palisade_output out = palisade__execute(&call);
    memset(&result, 0, sizeof result);
    if (out.has_error) {
        result.is_error = 1;
        result.as.error = out.error;
        return &result;
    }
    result.as.output.content = out.content;
    result.as.output.content_count = out.content_count;
    result.as.output.success = !out.is_failure;
    result.as.output.metadata = palisade__of(out.metadata);
    result.as.output.modified = out.modified;
    result.as.output.modified_count = out.modified_count;
    return &result;
}

/* The layout is what the contract demands. */
_Static_assert(sizeof(palisade__definition) == 68, "definition");
_Static_assert(sizeof(palisade__content) == 36, "content");
_Static_assert(sizeof(palisade__call) == 72, "call");
_Static_assert(sizeof(palisade__error) == 20, "tool-error");
_Static_assert(sizeof(palisade__result) == 44, "result");
#else
#include "palisade_testing.h"
#endif
