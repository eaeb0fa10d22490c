// What is said of a choice beside its figures.
#pragma once

#include <string>
#include <utility>

namespace stoker {

enum class NoteKind { plain, sized_by_limit, weight_only, packing, simpler };

struct PlanNote {
    PlanNote(std::string words, NoteKind what = NoteKind::plain) : text(std::move(words)), kind(what) {}
    std::string text;
    NoteKind kind;
};

}  // namespace stoker
