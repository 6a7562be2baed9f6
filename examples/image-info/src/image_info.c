/* The plugin `image_info`: the size of an image, and a thumbnail that the model can look at. */
#define PALISADE_IMPLEMENTATION
#include "palisade.h"
#include "png.h"

typedef struct {
    const char *format;
    uint32_t width, height;
} info;

static uint32_t little(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    while (bytes-- > 0) value = value << 8 | at[bytes];
    return value;
}

/* The size stands in the frame header, which follows any number of other segments. */
static bool jpeg_info(const uint8_t *data, size_t size, info *found) {
    for (size_t at = 2; size - at >= 9 && data[at] == 0xff;) {
        uint8_t marker = data[at + 1];
        bool is_frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 &&
                        marker != 0xcc;
        if (is_frame) {
            found->height = (uint32_t)data[at + 5] << 8 | data[at + 6];
            found->width = (uint32_t)data[at + 7] << 8 | data[at + 8];
            return true;
        }
        size_t length = (size_t)data[at + 2] << 8 | data[at + 3];
        if (length < 2 || length + 2 > size - at) return false;
        at += 2 + length;
    }
    return false;
}

static bool webp_info(const uint8_t *data, size_t size, info *found) {
    if (size < 30) return false;
    if (memcmp(data + 12, "VP8X", 4) == 0) {
        found->width = little(data + 24, 3) + 1;
        found->height = little(data + 27, 3) + 1;
    } else if (memcmp(data + 12, "VP8L", 4) == 0) {
        uint32_t bits = little(data + 21, 4);
        found->width = (bits & 0x3fff) + 1;
        found->height = (bits >> 14 & 0x3fff) + 1;
    } else {
        found->width = little(data + 26, 2) & 0x3fff;
        found->height = little(data + 28, 2) & 0x3fff;
    }
    return true;
}

static bool find_info(const uint8_t *data, size_t size, info *found) {
    if (size >= 24 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0) {
        *found = (info){"PNG", png_number(data + 16), png_number(data + 20)};
        return true;
    }
    if (size >= 10 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0)) {
        *found = (info){"GIF", little(data + 6, 2), little(data + 8, 2)};
        return true;
    }
    if (size >= 26 && memcmp(data, "BM", 2) == 0) {
        int32_t height = (int32_t)little(data + 22, 4);
        *found = (info){"BMP", little(data + 18, 4), (uint32_t)(height < 0 ? 0u - (uint32_t)height : (uint32_t)height)};
        return true;
    }
    if (size >= 4 && memcmp(data, "\xff\xd8\xff", 3) == 0) {
        found->format = "JPEG";
        return jpeg_info(data, size, found);
    }
    if (size >= 16 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0) {
        found->format = "WebP";
        return webp_info(data, size, found);
    }
    return false;
}

/* Reads the image that the input names. NULL if that fails, with the error in the output. */
static uint8_t *read_image(const palisade_call *call, palisade_output *out, size_t *size) {
    const char *path = palisade_string(call, "path", "");
    uint8_t *data = (uint8_t *)palisade_read_file(path, size);
    if (!data) palisade_file_error(out, path);
    return data;
}

static void image_size(const palisade_call *call, palisade_output *out) {
    size_t size;
    uint8_t *data = read_image(call, out, &size);
    if (!data) return;
    info found = {0};
    if (!find_info(data, size, &found)) {
        palisade_invalid(out, "path", "is no PNG, JPEG, GIF, BMP or WebP image");
        return;
    }
    palisade_json(out, "{\"format\":%s,\"width\":%u,\"height\":%u,\"bytes\":%zu}",
                  palisade_quote(found.format), (unsigned)found.width, (unsigned)found.height, size);
}

static void thumbnail(const palisade_call *call, palisade_output *out) {
    size_t size;
    uint8_t *data = read_image(call, out, &size);
    if (!data) return;
    image whole;
    const char *fault = png_decode(data, size, &whole);
    if (fault) {
        palisade_invalid(out, "path", "%s", fault);
        return;
    }
    palisade_progress(1, 2, "shrinking");
    image small = image_shrink(&whole, (uint32_t)palisade_integer(call, "longest_side", 128));
    uint8_t *encoded = png_encode(&small, &size);
    palisade_image(out, "image/png", encoded, size);
}

#define PATH "\"path\":{\"type\":\"string\",\"format\":\"workspace-path\",\"x-access\":\"read\",\"description\":\"The image.\"}"

PALISADE_TOOLS(
    {
        .name = "image_size",
        .description = "Tells the format, width and height of a PNG, JPEG, GIF, BMP or WebP image.",
        .input_schema = "{\"type\":\"object\",\"properties\":{" PATH "},\"required\":[\"path\"]}",
        .output_schema = "{\"type\":\"object\",\"properties\":{\"format\":{\"type\":\"string\"},"
                         "\"width\":{\"type\":\"integer\"},\"height\":{\"type\":\"integer\"},"
                         "\"bytes\":{\"type\":\"integer\"}},"
                         "\"required\":[\"format\",\"width\",\"height\",\"bytes\"]}",
        .side_effects = PALISADE_READ,
        .idempotent = true,
        .run = image_size,
    },
    {
        .name = "image_thumbnail",
        .description = "Returns a small copy of a PNG image, to look at.",
        .input_schema = "{\"type\":\"object\",\"properties\":{" PATH
                        ",\"longest_side\":{\"type\":\"integer\",\"minimum\":8,\"maximum\":512,"
                        "\"default\":128,\"description\":\"In pixels.\"}},\"required\":[\"path\"]}",
        .side_effects = PALISADE_READ,
        .idempotent = true,
        .run = thumbnail,
    })
