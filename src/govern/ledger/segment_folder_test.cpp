#include "govern/ledger/segment_folder.h"

#include "io/files.h"
#include "io/segment_conformance.h"

namespace stoker {
namespace {

struct FolderOfSegments {
    static std::string prepare() {
        auto made = ScratchFolder::make("segments");
        if (!made) return made.error().text();
        place() = std::make_unique<ScratchFolder>(std::move(*made));
        return {};
    }
    static std::unique_ptr<SegmentHome> open() {
        return segment_folder({.folder = place()->path() + "/ledger", .usual_room = 256, .sync = false});
    }
    static std::unique_ptr<ScratchFolder>& place() {
        static std::unique_ptr<ScratchFolder> one;
        return one;
    }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Folder, SegmentConformance, FolderOfSegments);

}  // namespace
}  // namespace stoker
