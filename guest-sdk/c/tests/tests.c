/* Tests of palisade.h on the author's machine:
 * cc -I include tests/tests.c -o /tmp/tests && /tmp/tests */
#define PALISADE_IMPLEMENTATION
#include "palisade.h"

static int failures;

#define CHECK(holds) check((holds), #holds, __LINE__)
#define SAME(got, expected) same((got), (expected), #got, __LINE__)

static void check(bool holds, const char *what, int line) {
    if (holds) return;
    failures++;
    fprintf(stderr, "line %d: %s\n", line, what);
}

static void same(const char *got, const char *expected, const char *what, int line) {
    if (got && strcmp(got, expected) == 0) return;
    failures++;
    fprintf(stderr, "line %d: %s is \"%s\", not \"%s\"\n", line, what, got ? got : "NULL", expected);
}

static void inspect(const palisade_call *call, palisade_output *out) {
    palisade_text(out, "%s|%g|%lld|%d", palisade_string(call, "s", "none"),
                  palisade_number(call, "n", -1), (long long)palisade_integer(call, "i", -1),
                  palisade_boolean(call, "b", false));
}

static void blocks(const palisade_call *call, palisade_output *out) {
    (void)call;
    palisade_text(out, "%s", "one");
    palisade_json(out, "{\"a\":%s}", palisade_quote("\"\n\\\x01"));
    palisade_image(out, "image/png", "PNG", 3);
    palisade_link(out, "https://a.example", "a", NULL);
    palisade_resource(out, "a:b", NULL, "c");
    palisade_text(out, "two");
    palisade_modified(out, "x");
    palisade_modified(out, "y");
    palisade_failure(out);
}

static void report(const palisade_call *call, palisade_output *out) {
    (void)call;
    palisade_log(PALISADE_INFO, "%d of %d", 1, 2);
    palisade_log(PALISADE_ERROR, "no");
    palisade_progress(1, 2, "half");
    palisade_progress(2, -1, NULL);
    palisade_emit("a");
    palisade_emit("b");
    while (!palisade_cancelled()) palisade_emit(".");
    palisade_cancelled_error(out);
}

static void files(const palisade_call *call, palisade_output *out) {
    const char *path = palisade_string(call, "path", "");
    size_t size;
    char *data = palisade_read_file(path, &size);
    if (!data) {
        palisade_file_error(out, path);
        palisade_failed(out, "a later error does not count");
        return;
    }
    palisade_text(out, "%zu", size);
}

static void refuse(const palisade_call *call, palisade_output *out) {
    (void)call;
    palisade_text(out, "dropped");
    palisade_invalid(out, "/a", "is %s", "odd");
}

PALISADE_TOOLS({.name = "inspect", .description = "I.", .run = inspect},
               {.name = "blocks", .description = "B.", .run = blocks},
               {.name = "report", .description = "R.", .run = report},
               {.name = "files", .description = "F.", .run = files},
               {.name = "refuse", .description = "R.", .run = refuse})

static const char *inspected(const char *input) { return palisade_test_call("inspect", input).text; }

static void members_are_read(void) {
    SAME(inspected("{}"), "none|-1|-1|0");
    SAME(inspected("{\"s\":\"a\",\"n\":1.5,\"i\":-7,\"b\":true}"), "a|1.5|-7|1");
    SAME(inspected(" { \"x\" : {\"s\":\"no\"} , \"s\" : \"yes\" } "), "yes|-1|-1|0");
    SAME(inspected("{\"y\":[1,{\"s\":\"],}\"}],\"s\":\"in\"}"), "in|-1|-1|0");
    SAME(inspected("{\"s\":\"\\u00e9\\ud83d\\ude00\\n\\\"\\/\"}"), "\xc3\xa9\xf0\x9f\x98\x80\n\"/|-1|-1|0");
    SAME(inspected("{\"s\":\"\\ud83d\"}"), "\xef\xbf\xbd|-1|-1|0");
    SAME(inspected("{\"i\":9007199254740993}"), "none|-1|9007199254740993|0");
}

static void other_types_count_as_absent(void) {
    SAME(inspected("{\"s\":5,\"n\":\"1\",\"i\":null,\"b\":\"true\"}"), "none|-1|-1|0");
}

static void broken_json_is_survived(void) {
    const char *const broken[] = {"", "{", "{\"s", "{\"s\"", "{\"s\":", "{\"s\":\"a", "{\"s\":\"\\", "[",
                                  "{\"s\":\"\\u12\"}", "{]", "nonsense", "{\"a\":[{]}", "{,}"};
    for (size_t at = 0; at < sizeof broken / sizeof *broken; at++) {
        const char *text = inspected(broken[at]);
        CHECK(strncmp(text, "none|", 5) == 0);
    }
}

static void zeros_in_the_input_are_refused(void) {
    const char *const refused[] = {"{\"\\u0000\":1,\"s\":\"a\"}", "{\"s\":\"a\\u0000b\"}",
                                   "{\"s\":\"\\\\\\u0000\"}"};
    for (size_t at = 0; at < sizeof refused / sizeof *refused; at++) {
        palisade_test_result result = palisade_test_call("inspect", refused[at]);
        SAME(result.error, "invalid-input");
    }
    CHECK(strncmp(inspected("{\"s\":\"\\\\u0000\"}"), "\\u0000|", 7) == 0);
    CHECK(strncmp(inspected("{\"\\ud800\":1,\"s\":\"a\"}"), "a|", 2) == 0);
}

static void integers_are_the_nearest_that_fit(void) {
    CHECK(strstr(inspected("{\"i\":1e3}"), "|1000|"));
    CHECK(strstr(inspected("{\"i\":1.2345678901234568e+22}"), "|9223372036854775807|"));
    CHECK(strstr(inspected("{\"i\":-1e300}"), "|-9223372036854775808|"));
    CHECK(strstr(inspected("{\"i\":-12}"), "|-12|"));
}

static void elements_are_read(void) {
    const char *array = "[1, \"two\" ,{\"a\":[3]}]";
    SAME(palisade_json_element(array, 0), "1");
    SAME(palisade_json_string(palisade_json_element(array, 1)), "two");
    SAME(palisade_json_element(palisade_json_member(palisade_json_element(array, 2), "a"), 0), "3");
    CHECK(palisade_json_element(array, 3) == NULL);
    CHECK(palisade_json_element("[]", 0) == NULL);
    CHECK(palisade_json_element("{}", 0) == NULL);
    CHECK(palisade_json_member("[]", "a") == NULL);
}

static void blocks_are_returned(void) {
    palisade_test_result result = palisade_test_call("blocks", "{}");
    SAME(result.text, "one\ntwo");
    SAME(result.json, "{\"a\":\"\\\"\\u000a\\\\\\u0001\"}");
    CHECK(result.size == 3 && memcmp(result.data, "PNG", 3) == 0);
    SAME(result.modified, "x\ny");
    CHECK(!result.success && !result.error);
}

static void messages_are_recorded_and_cancellation_is_seen(void) {
    palisade_test_cancel_after(2);
    palisade_test_result result = palisade_test_call("report", "{}");
    palisade_test_cancel_after(-1);
    SAME(result.log, "info: 1 of 2\nerror: no");
    SAME(result.progress, "1/2 half\n2");
    SAME(result.emitted, "ab..");
    SAME(result.error, "cancelled");
}

static void errors_keep_their_kind(void) {
    palisade_test_result missing = palisade_test_call("files", "{\"path\":\"absent\"}");
    SAME(missing.error, "not-found");
    SAME(missing.message, "absent: No such file or directory");
    palisade_test_result invalid = palisade_test_call("refuse", "{}");
    SAME(invalid.error, "invalid-input");
    SAME(invalid.field, "/a");
    SAME(invalid.message, "is odd");
    SAME(palisade_test_call("absent", "{}").message, "this plugin has no tool `absent`");
}

static void files_are_read_whole(void) {
    size_t size = 200 * 1024;
    char *data = palisade_alloc(size);
    memset(data, 'x', size);
    CHECK(palisade_write_file("large", data, size));
    SAME(palisade_test_call("files", "{\"path\":\"large\"}").text, "204800");
    CHECK(palisade_write_file("empty", "", 0));
    SAME(palisade_test_call("files", "{\"path\":\"empty\"}").text, "0");
    CHECK(!palisade_write_file("absent/file", "", 0));
    SAME(palisade_test_call("files", "{\"path\":\".\"}").message, ".: Is a directory");
}

static void text_that_is_no_utf8_is_replaced(void) {
#define FFFD "\xEF\xBF\xBD"
    SAME(palisade__valid("caf\xe9 au"), "caf" FFFD " au");
    SAME(palisade__valid("\xc3\xa9\xf0\x9f\x98\x80"), "\xc3\xa9\xf0\x9f\x98\x80");
    SAME(palisade__valid("\xe9"), FFFD);
    SAME(palisade__valid("\xc0\x80"), FFFD FFFD);
    SAME(palisade__valid("\xed\xa0\x80x"), FFFD FFFD FFFD "x");
    SAME(palisade__valid("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD);
    SAME(palisade__valid("\xf5\xc1"), FFFD FFFD);
}

int main(void) {
    members_are_read();
    other_types_count_as_absent();
    broken_json_is_survived();
    zeros_in_the_input_are_refused();
    integers_are_the_nearest_that_fit();
    elements_are_read();
    blocks_are_returned();
    text_that_is_no_utf8_is_replaced();
    messages_are_recorded_and_cancellation_is_seen();
    errors_keep_their_kind();
    files_are_read_whole();
    if (!failures) puts("all tests passed");
    return failures != 0;
}
