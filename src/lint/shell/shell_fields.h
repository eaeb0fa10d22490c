// Pieces of words put together to the fields that a command is given.
#pragma once

#include <algorithm>

#include "lint/shell/shell_trace.h"

namespace stoker::lint {

class ShellTrace::FieldMaker {
public:
    FieldMaker(Fields& out, std::string_view separators, bool splits)
        : out_(out), separators_(separators), splits_(splits) {}

    void put(const TracedText& piece, bool quoted) {
        if (quoted || !splits_ || !piece.known || piece.text.find_first_of(separators_) == std::string::npos) {
            add(piece);
            any_ |= quoted || !piece.text.empty();
            return;
        }
        const bool whole = piece.source != nullptr && piece.at.size() == piece.text.size();
        std::size_t at = 0;
        while (at < piece.text.size()) {
            const std::size_t to = std::min(piece.text.find_first_of(separators_, at), piece.text.size());
            if (to > at) {
                TracedText part;
                part.text = piece.text.substr(at, to - at);
                part.assumed = piece.assumed;
                part.source = piece.source;
                part.at = piece.at;
                if (whole)
                    part.at = {piece.at.begin + static_cast<std::uint32_t>(at),
                               piece.at.begin + static_cast<std::uint32_t>(to)};
                add(part);
                any_ = true;
            }
            if (to < piece.text.size()) cut();
            at = to + 1;
        }
    }
    void quote() { any_ = true; }
    void cut() {
        if (any_ || !now_.text.empty() || !now_.known) out_.push_back(std::move(now_));
        now_ = {};
        any_ = begun_ = false;
    }

private:
    void add(const TracedText& piece) {
        if (!begun_) {
            now_ = piece;
            begun_ = true;
            return;
        }
        if (piece.text.empty() && piece.known) return;
        if (now_.text.empty() && now_.known) {
            const bool assumed = now_.assumed;
            now_ = piece;
            now_.assumed |= assumed;
            return;
        }
        const auto exact = [](const TracedText& t) { return t.source != nullptr && t.at.size() == t.text.size(); };
        if (exact(now_) && exact(piece) && now_.source == piece.source && now_.at.end == piece.at.begin)
            now_.at.end = piece.at.end;
        else
            now_.at = {};
        now_.text += piece.text;
        now_.known &= piece.known;
        now_.assumed |= piece.assumed;
    }

    Fields& out_;
    std::string_view separators_;
    TracedText now_;
    bool splits_, any_ = false, begun_ = false;
};

}  // namespace stoker::lint
