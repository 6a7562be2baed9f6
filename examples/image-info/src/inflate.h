/* Decompresses zlib streams (RFC 1950 and 1951). */
#ifndef INFLATE_H
#define INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *from, *from_end;
    uint8_t *to, *to_start, *to_end;
    uint32_t bits;
    int bit_count;
    bool is_broken;
} inflate_state;

/* A Huffman code: how many codes there are of each length, and the symbols in their order. */
typedef struct {
    uint16_t counts[16];
    uint16_t symbols[288];
} inflate_code;

static uint32_t inflate_bits(inflate_state *s, int count) {
    while (s->bit_count < count) {
        if (s->from == s->from_end) {
            s->is_broken = true;
            return 0;
        }
        s->bits |= (uint32_t)*s->from++ << s->bit_count;
        s->bit_count += 8;
    }
    uint32_t value = s->bits & ((1u << count) - 1);
    s->bits >>= count;
    s->bit_count -= count;
    return value;
}

static void inflate_make(inflate_code *code, const uint8_t *lengths, int count) {
    uint16_t offsets[16] = {0};
    memset(code, 0, sizeof *code);
    for (int symbol = 0; symbol < count; symbol++) code->counts[lengths[symbol]]++;
    code->counts[0] = 0;
    for (int length = 1; length < 15; length++)
        offsets[length + 1] = offsets[length] + code->counts[length];
    for (int symbol = 0; symbol < count; symbol++)
        if (lengths[symbol]) code->symbols[offsets[lengths[symbol]]++] = (uint16_t)symbol;
}

static int inflate_symbol(inflate_state *s, const inflate_code *code) {
    int value = 0, first = 0, index = 0;
    for (int length = 1; length <= 15; length++) {
        value |= (int)inflate_bits(s, 1);
        int count = code->counts[length];
        if (s->is_broken) return 0;
        if (value - count < first) return code->symbols[index + (value - first)];
        index += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    s->is_broken = true;
    return 0;
}

static void inflate_stored(inflate_state *s) {
    s->bits = 0;
    s->bit_count = 0;
    if (s->from_end - s->from < 4) {
        s->is_broken = true;
        return;
    }
    size_t length = s->from[0] | (size_t)s->from[1] << 8;
    s->from += 4;
    if (length > (size_t)(s->from_end - s->from) || length > (size_t)(s->to_end - s->to)) {
        s->is_broken = true;
        return;
    }
    memcpy(s->to, s->from, length);
    s->to += length;
    s->from += length;
}

static void inflate_block(inflate_state *s, const inflate_code *literals,
                          const inflate_code *distances) {
    static const uint16_t length_bases[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,
                                            15, 17, 19, 23, 27, 31, 35, 43, 51,  59,
                                            67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_bases[] = {1,    2,    3,    4,    5,    7,     9,    13,
                                              17,   25,   33,   49,   65,   97,    129,  193,
                                              257,  385,  513,  769,  1025, 1537,  2049, 3073,
                                              4097, 6145, 8193, 12289, 16385, 24577};
    static const uint8_t distance_bits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                            6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};
    while (!s->is_broken) {
        int symbol = inflate_symbol(s, literals);
        if (s->is_broken || symbol == 256) return;
        if (symbol < 256) {
            if (s->to == s->to_end) s->is_broken = true;
            else *s->to++ = (uint8_t)symbol;
            continue;
        }
        if (symbol > 285) break;
        size_t length = length_bases[symbol - 257] + inflate_bits(s, length_bits[symbol - 257]);
        int code = inflate_symbol(s, distances);
        if (code > 29) break;
        size_t distance = distance_bases[code] + inflate_bits(s, distance_bits[code]);
        if (distance > (size_t)(s->to - s->to_start) || length > (size_t)(s->to_end - s->to)) break;
        for (; length > 0; length--, s->to++) *s->to = s->to[-(ptrdiff_t)distance];
    }
    s->is_broken = true;
}

static void inflate_fixed(inflate_state *s) {
    inflate_code literals, distances;
    uint8_t lengths[288];
    for (int at = 0; at < 288; at++)
        lengths[at] = (uint8_t)(at < 144 ? 8 : at < 256 ? 9 : at < 280 ? 7 : 8);
    inflate_make(&literals, lengths, 288);
    memset(lengths, 5, 30);
    inflate_make(&distances, lengths, 30);
    inflate_block(s, &literals, &distances);
}

static void inflate_dynamic(inflate_state *s) {
    static const uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    int literal_count = (int)inflate_bits(s, 5) + 257, distance_count = (int)inflate_bits(s, 5) + 1;
    int code_count = (int)inflate_bits(s, 4) + 4, total = literal_count + distance_count;
    uint8_t lengths[320] = {0};
    inflate_code codes, literals, distances;
    for (int at = 0; at < code_count; at++) lengths[order[at]] = (uint8_t)inflate_bits(s, 3);
    inflate_make(&codes, lengths, 19);
    memset(lengths, 0, sizeof lengths);
    if (literal_count > 286 || distance_count > 30) s->is_broken = true;
    for (int at = 0; at < total && !s->is_broken;) {
        int symbol = inflate_symbol(s, &codes), repeat = 1;
        uint8_t value = (uint8_t)symbol;
        if (symbol >= 16) {
            if (symbol == 16 && at == 0) s->is_broken = true;
            value = symbol == 16 && at > 0 ? lengths[at - 1] : 0;
            repeat = symbol == 16   ? 3 + (int)inflate_bits(s, 2)
                     : symbol == 17 ? 3 + (int)inflate_bits(s, 3)
                                    : 11 + (int)inflate_bits(s, 7);
        }
        if (at + repeat > total) s->is_broken = true;
        for (; repeat > 0 && at < total; repeat--) lengths[at++] = value;
    }
    if (s->is_broken) return;
    inflate_make(&literals, lengths, literal_count);
    inflate_make(&distances, lengths + literal_count, distance_count);
    inflate_block(s, &literals, &distances);
}

/* Decompresses exactly `to_size` bytes. False if the stream is broken or has another size. */
static bool inflate(const uint8_t *from, size_t size, uint8_t *to, size_t to_size) {
    if (size < 2 || (from[0] & 15) != 8) return false;
    inflate_state s = {from + 2, from + size, to, to, to + to_size, 0, 0, false};
    for (bool is_last = false; !is_last && !s.is_broken;) {
        is_last = inflate_bits(&s, 1);
        switch (inflate_bits(&s, 2)) {
        case 0: inflate_stored(&s); break;
        case 1: inflate_fixed(&s); break;
        case 2: inflate_dynamic(&s); break;
        default: s.is_broken = true;
        }
    }
    return !s.is_broken && s.to == s.to_end;
}

#endif
