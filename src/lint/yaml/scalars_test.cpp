// Every byte of an embedded script must lead back to its own byte of the file, whatever style it was written in.
#include "lint/yaml/scalars.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lint/read.h"

namespace stoker::lint {
namespace {

// A scalar of random words in one of the styles, and the file that holds it.
std::string scalar_file(const std::vector<std::string>& words, int style, bool crlf) {
    static constexpr const char* kHeads[] = {"a: |\n", "a: >-\n", "a: \"", "a: '", "a: "};
    std::string text = kHeads[style];
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (style < 2)
            text += "    " + words[i] + (i % 3 == 2 ? "\n\n" : "\n");
        else
            text += (i == 0       ? ""
                     : i % 4 == 3 ? "\n  "
                                  : " ") +
                    words[i] +
                    (style == 2 && i % 2   ? "\\t"
                     : style == 3 && i % 2 ? "''"
                                           : "");
    }
    text += style == 2 ? "\"\n" : style == 3 ? "'\n" : "\n";
    if (crlf)
        for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.replace(at, 1, "\r\n");
    return text + "last: 1\n";
}

RC_GTEST_PROP(Scalars, VerbatimPiecesAreTheSameBytes, ()) {
    const auto words = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
        rc::gen::element<std::string>("torchrun", "x=1", "\xC3\xBC", "--n", "8", "a.py")));
    const int style = *rc::gen::inRange(0, 5);
    const bool crlf = *rc::gen::arbitrary<bool>();
    File file("a.yaml", scalar_file(words, style, crlf));
    file.kinds.add(Kind::compose);
    read_yaml(file);
    RC_ASSERT(file.problems.empty());
    const Node& node = *file.tree.roots.at(0)->find("a");
    const std::vector<Piece> pieces = pieces_of(node);
    const Source guest(file.source(), std::string(node.text), pieces);
    std::uint32_t covered = 0;
    for (const Piece& piece : pieces) {
        RC_ASSERT(piece.guest == covered);
        covered += piece.length;
        if (piece.kind == Piece::Kind::verbatim)
            RC_ASSERT(file.source().text(piece.host) == node.text.substr(piece.guest, piece.length));
    }
    RC_ASSERT(covered == node.text.size());
    for (std::uint32_t at = 0; at < covered; ++at) {
        const Span host = guest.in_outermost({at, at + 1});
        RC_ASSERT(node.span.begin <= host.begin && host.end <= file.source().text().size());
        if (guest.editable({at, at + 1})) RC_ASSERT(file.source().text(host) == node.text.substr(at, 1));
    }
}

}  // namespace
}  // namespace stoker::lint
