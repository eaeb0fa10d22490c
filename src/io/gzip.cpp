#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "base/units.h"
#include "io/files.h"

namespace stoker {
namespace {

// inflateEnd on every way out.
struct Inflater {
    z_stream stream{};
    bool ready = false;
    Inflater() { ready = inflateInit2(&stream, 15 + 16) == Z_OK; }  // + 16: gzip only
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;
    ~Inflater() {
        if (ready) inflateEnd(&stream);
    }
};

Error damaged(FileName file, std::string what) {
    return Error(ErrorKind::invalid, "the gzip data " + std::move(what), SourcePos{file, 0, 0},
                 "fetch the file again, or unpack it with gzip -d to see how far it goes");
}

}  // namespace

bool is_gzip(std::string_view data) {
    return data.starts_with("\x1f\x8b");
}

Result<std::string> gunzip(std::string_view data, FileName file, std::size_t max_bytes) {
    constexpr std::size_t kMostInput = std::size_t{1} << 30;
    if (data.size() > kMostInput)
        return Error(ErrorKind::exhausted, "more than 1 GiB of gzip data", SourcePos{file, 0, 0});
    Inflater inflater;
    if (!inflater.ready) return Error(ErrorKind::exhausted, "no memory to unpack gzip data");
    z_stream& stream = inflater.stream;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
    stream.avail_in = static_cast<uInt>(data.size());
    std::string text;
    for (;;) {
        const std::size_t have = text.size();
        const std::size_t room = std::min(std::max<std::size_t>(have, 65536), max_bytes + 1 - have);
        text.resize(have + room);
        stream.next_out = reinterpret_cast<Bytef*>(text.data() + have);
        stream.avail_out = static_cast<uInt>(room);
        const int code = inflate(&stream, Z_NO_FLUSH);
        text.erase(text.size() - std::min<std::size_t>(stream.avail_out, room));
        if (text.size() > max_bytes)
            return Error(ErrorKind::invalid,
                         "it unpacks to more than " + format_thousands(static_cast<double>(max_bytes)) +
                             " bytes, the most that is read",
                         SourcePos{file, 0, 0});
        if (code == Z_STREAM_END) {
            if (stream.avail_in == 0) return text;
            if (!is_gzip({reinterpret_cast<const char*>(stream.next_in), stream.avail_in}))
                return damaged(file, "is followed by something else");
            if (inflateReset(&stream) != Z_OK) return damaged(file, "is damaged");
            continue;
        }
        if (code == Z_BUF_ERROR || (code == Z_OK && stream.avail_in == 0 && stream.avail_out != 0))
            return damaged(file, "ends too early");
        if (code != Z_OK)
            return damaged(file, stream.msg != nullptr ? std::string("is damaged: ") + stream.msg : "is damaged");
    }
}

Result<std::string> read_plain_or_gzip(const std::string& path, std::size_t max_bytes) {
    TRY(std::string data, read_file(path, max_bytes));
    if (!is_gzip(data)) return data;
    return gunzip(data, path, max_bytes);
}

}  // namespace stoker
