/* Decodes and encodes PNG images of 8 bits. Included after palisade.h, whose memory it uses. */
#ifndef PNG_H
#define PNG_H

#include "inflate.h"

/* Pixels of four bytes: red, green, blue, alpha. */
typedef struct {
    uint32_t width, height;
    uint8_t *pixels;
} image;

/* 8 million pixels: with its copies, an image then fits into the memory of a call. */
enum { PNG_MOST_PIXELS = 8 * 1000 * 1000 };

static uint32_t png_number(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static uint8_t png_paeth(int a, int b, int c) {
    int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Undoes the filter of each line in place. */
static bool png_unfilter(uint8_t *data, size_t height, size_t stride, size_t pixel) {
    for (size_t y = 0; y < height; y++) {
        uint8_t *line = data + y * (stride + 1) + 1;
        const uint8_t *above = y ? line - stride - 1 : NULL;
        if (line[-1] > 4) return false;
        for (size_t x = 0; x < stride; x++) {
            int a = x >= pixel ? line[x - pixel] : 0, b = above ? above[x] : 0;
            int c = above && x >= pixel ? above[x - pixel] : 0;
            switch (line[-1]) {
            case 1: line[x] += (uint8_t)a; break;
            case 2: line[x] += (uint8_t)b; break;
            case 3: line[x] += (uint8_t)((a + b) / 2); break;
            case 4: line[x] += png_paeth(a, b, c); break;
            }
        }
    }
    return true;
}

/* Returns NULL, or the reason why the image cannot be decoded. */
static const char *png_decode(const uint8_t *data, size_t size, image *out) {
    static const uint8_t channels_of[] = {1, 0, 3, 1, 2, 0, 4};
    if (size < 33 || memcmp(data, "\x89PNG\r\n\x1a\n", 8) != 0) return "is no PNG image";
    uint32_t width = png_number(data + 16), height = png_number(data + 20);
    uint8_t depth = data[24], type = data[25];
    if (depth != 8 || type > 6 || !channels_of[type] || data[28] != 0)
        return "is a PNG image of a kind that has no thumbnail here: not 8 bits, or interlaced";
    if (!width || !height || (uint64_t)width * height > PNG_MOST_PIXELS)
        return "has more than 8 million pixels";
    const uint8_t *palette = NULL, *alpha = NULL;
    uint32_t palette_size = 0, alpha_size = 0;
    uint8_t *packed = palisade_alloc(size);
    size_t packed_size = 0;
    for (size_t at = 8; size - at >= 12;) {
        uint32_t length = png_number(data + at);
        const uint8_t *body = data + at + 8;
        if (length > size - at - 12) return "is cut off";
        if (memcmp(data + at + 4, "PLTE", 4) == 0) palette = body, palette_size = length / 3;
        if (memcmp(data + at + 4, "tRNS", 4) == 0) alpha = body, alpha_size = length;
        if (memcmp(data + at + 4, "IDAT", 4) == 0) {
            memcpy(packed + packed_size, body, length);
            packed_size += length;
        }
        at += 12 + length;
    }
    size_t channels = channels_of[type], stride = width * channels;
    uint8_t *lines = palisade_alloc((stride + 1) * height);
    if (!inflate(packed, packed_size, lines, (stride + 1) * height) ||
        !png_unfilter(lines, height, stride, channels))
        return "is a broken PNG image";
    out->width = width;
    out->height = height;
    out->pixels = palisade_alloc((size_t)width * height * 4);
    for (size_t y = 0; y < height; y++) {
        const uint8_t *from = lines + y * (stride + 1) + 1;
        uint8_t *to = out->pixels + y * width * 4;
        for (size_t x = 0; x < width; x++, from += channels, to += 4) {
            uint8_t index = from[0];
            to[3] = type == 4 ? from[1] : type == 6 ? from[3] : 255;
            if (type == 3) {
                if (index >= palette_size) return "is a broken PNG image";
                memcpy(to, palette + index * 3, 3);
                if (index < alpha_size) to[3] = alpha[index];
            } else if (type == 2 || type == 6) {
                memcpy(to, from, 3);
            } else {
                memset(to, index, 3);
            }
        }
    }
    return NULL;
}

/* Scales down so that neither side is above `most`: each pixel is the mean of what it covers. */
static image image_shrink(const image *from, uint32_t most) {
    uint32_t longest = from->width > from->height ? from->width : from->height;
    if (longest <= most) return *from;
    image to = {(uint32_t)((uint64_t)from->width * most / longest),
                (uint32_t)((uint64_t)from->height * most / longest), NULL};
    if (!to.width) to.width = 1;
    if (!to.height) to.height = 1;
    to.pixels = palisade_alloc((size_t)to.width * to.height * 4);
    for (uint32_t y = 0; y < to.height; y++) {
        uint32_t top = (uint32_t)((uint64_t)y * from->height / to.height);
        uint32_t bottom = (uint32_t)((uint64_t)(y + 1) * from->height / to.height);
        for (uint32_t x = 0; x < to.width; x++) {
            uint32_t left = (uint32_t)((uint64_t)x * from->width / to.width);
            uint32_t right = (uint32_t)((uint64_t)(x + 1) * from->width / to.width);
            uint64_t sums[4] = {0}, weight = 0, count = 0;
            for (uint32_t v = top; v < bottom; v++) {
                for (uint32_t u = left; u < right; u++, count++) {
                    const uint8_t *pixel = from->pixels + ((size_t)v * from->width + u) * 4;
                    /* What is transparent has no colour to mix in. */
                    for (int channel = 0; channel < 3; channel++)
                        sums[channel] += (uint64_t)pixel[channel] * pixel[3];
                    weight += pixel[3];
                }
            }
            uint8_t *pixel = to.pixels + ((size_t)y * to.width + x) * 4;
            for (int channel = 0; channel < 3; channel++)
                pixel[channel] = (uint8_t)(weight ? (sums[channel] + weight / 2) / weight : 0);
            pixel[3] = (uint8_t)(count ? (weight + count / 2) / count : 0);
        }
    }
    return to;
}

static uint8_t *png_put(uint8_t *to, uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) *to++ = (uint8_t)(number >> shift);
    return to;
}

/* Writes a chunk whose body is in place. */
static uint8_t *png_close(uint8_t *chunk, const char *type, size_t size) {
    png_put(chunk, (uint32_t)size);
    memcpy(chunk + 4, type, 4);
    uint32_t check = 0xffffffff;
    for (const uint8_t *at = chunk + 4; at < chunk + 8 + size; at++) {
        check ^= *at;
        for (int bit = 0; bit < 8; bit++) check = check >> 1 ^ (check & 1 ? 0xedb88320 : 0);
    }
    return png_put(chunk + 8 + size, ~check);
}

/* Encodes without compression, which is enough for a thumbnail. */
static uint8_t *png_encode(const image *from, size_t *size) {
    size_t stride = (size_t)from->width * 4 + 1, raw = stride * from->height;
    size_t blocks = raw / 65535 + 1;
    uint8_t *start = palisade_alloc(raw + blocks * 5 + 100), *chunk = start, *body;
    memcpy(chunk, "\x89PNG\r\n\x1a\n", 8);
    chunk += 8;
    png_put(png_put(chunk + 8, from->width), from->height);
    memcpy(chunk + 16, "\x08\x06\x00\x00\x00", 5);
    chunk = png_close(chunk, "IHDR", 13);
    body = chunk + 8;
    *body++ = 0x78;
    *body++ = 0x01;
    uint32_t low = 1, high = 0;
    for (size_t at = 0; at < raw; at++) {
        if (at % 65535 == 0) {
            size_t length = raw - at < 65535 ? raw - at : 65535;
            uint8_t head[] = {length == raw - at, (uint8_t)length, (uint8_t)(length >> 8),
                              (uint8_t)~length, (uint8_t)(~length >> 8)};
            memcpy(body, head, 5);
            body += 5;
        }
        size_t x = at % stride;
        uint8_t byte = x ? from->pixels[at / stride * (stride - 1) + x - 1] : 0;
        *body++ = byte;
        low = (low + byte) % 65521;
        high = (high + low) % 65521;
    }
    body = png_put(body, high << 16 | low);
    chunk = png_close(chunk, "IDAT", (size_t)(body - chunk) - 8);
    chunk = png_close(chunk, "IEND", 0);
    *size = (size_t)(chunk - start);
    return start;
}

#endif
