/* The host of a test, on the author's machine: records what a tool sends. */

static char *palisade__record_log, *palisade__record_progress, *palisade__record_emitted;
static int palisade__cancel_after = -1, palisade__polls;

static void palisade__record(char **record, const char *separator, const char *text) {
    bool is_first = !*record || !**record;
    *record = palisade_format("%s%s%s", *record ? *record : "", is_first ? "" : separator, text);
}

static void palisade__log(int32_t level, const char *text, size_t size) {
    static const char *const names[] = {"trace", "debug", "info", "warn", "error"};
    char *line = palisade_format("%s: %.*s", names[level], (int)size, text);
    palisade__record(&palisade__record_log, "\n", line);
}

static void palisade__progress(double done, int32_t has_total, double total, int32_t has_message,
                               const char *message, size_t size) {
    char *line = has_total ? palisade_format("%g/%g", done, total) : palisade_format("%g", done);
    if (has_message) line = palisade_format("%s %.*s", line, (int)size, message);
    palisade__record(&palisade__record_progress, "\n", line);
}

static void palisade__emit(const char *chunk, size_t size) {
    palisade__record(&palisade__record_emitted, "", palisade_format("%.*s", (int)size, chunk));
}

static int32_t palisade__cancelled(void) {
    return palisade__cancel_after >= 0 && ++palisade__polls > palisade__cancel_after;
}

void palisade_test_cancel_after(int polls) {
    palisade__cancel_after = polls;
    palisade__polls = 0;
}

static const char *palisade__joined(char *lines) { return lines ? lines : ""; }

palisade_test_result palisade_test_call(const char *tool, const char *input) {
    static const char *const kinds[] = {"invalid-input", "not-found", "permission-denied", "failed",
                                        "cancelled"};
    palisade_call call = {"call_1", NULL, NULL, tool, input, 60000, "{}", "{}"};
    palisade__record_log = palisade__record_progress = palisade__record_emitted = NULL;
    palisade_output out = palisade__execute(&call);
    palisade_test_result result;
    memset(&result, 0, sizeof result);
    char *text = NULL, *modified = NULL;
    for (size_t at = 0; at < out.content_count; at++) {
        const palisade__content *block = &out.content[at];
        if (block->tag == PALISADE__TEXT) palisade__record(&text, "\n", block->as.text.ptr);
        if (block->tag == PALISADE__JSON && !result.json) result.json = block->as.text.ptr;
        bool is_media = block->tag == PALISADE__IMAGE || block->tag == PALISADE__AUDIO;
        if (is_media && !result.data) {
            result.data = block->as.media.data.ptr;
            result.size = block->as.media.data.len;
        }
    }
    for (size_t at = 0; at < out.modified_count; at++)
        palisade__record(&modified, "\n", out.modified[at].ptr);
    if (out.has_error) {
        bool is_input = out.error.tag == PALISADE__INVALID;
        result.error = kinds[out.error.tag];
        result.message = is_input ? out.error.as.second.ptr : out.error.as.first.ptr;
        result.field = is_input ? out.error.as.first.ptr : NULL;
    }
    result.text = palisade__joined(text);
    result.modified = palisade__joined(modified);
    result.log = palisade__joined(palisade__record_log);
    result.progress = palisade__joined(palisade__record_progress);
    result.emitted = palisade__joined(palisade__record_emitted);
    result.success = !out.has_error && !out.is_failure;
    return result;
}
