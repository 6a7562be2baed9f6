/* Counts the words and lines of a text, with Extism's PDK. */
#define EXTISM_IMPLEMENTATION
#include "extism-pdk.h"

#define MOST 65536

static uint8_t text[MOST];
static uint8_t result[64];
static int written;

static void write_number(int number) {
  char digits[12];
  int count = 0;
  do
    digits[count++] = (char)('0' + number % 10);
  while (number /= 10);
  while (count)
    result[written++] = (uint8_t)digits[--count];
}

static void write_text(const char *text) {
  while (*text)
    result[written++] = (uint8_t)*text++;
}

static int is_blank(uint8_t byte) {
  return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r';
}

int32_t EXTISM_EXPORTED_FUNCTION(word_count) {
  uint64_t length = extism_input_length();
  if (length > MOST)
    length = MOST;
  extism_load_input(0, text, length);
  int words = 0, lines = 0, inside = 0;
  for (uint64_t at = 0; at < length; at++) {
    words += !is_blank(text[at]) && !inside;
    inside = !is_blank(text[at]);
    lines += text[at] == '\n';
  }
  write_number(words);
  write_text(" words, ");
  write_number(lines);
  write_text(" lines");
  ExtismHandle out = extism_alloc((uint64_t)written);
  extism_store_to_handle(out, 0, result, (uint64_t)written);
  extism_output_set_from_handle(out, 0, (uint64_t)written);
  return 0;
}
