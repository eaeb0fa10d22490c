// skopeo and umoci, which fetch and unpack images: each call is a child process with a deadline, whose complaint
// becomes one of our errors. They need no daemon and no root, and leave nothing outside of the folder they are given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "deploy/driver.h"
#include "deploy/image_name.h"

namespace stoker {

// What is missing to fetch images, and what to do about it; empty: nothing.
std::string why_no_fetching();

struct Manifest {
    std::string digest;      // of what the name points at now, a list for several processors included
    std::int64_t bytes = 0;  // of the layers for this processor; 0: the manifest does not say
};
// Asks the registry or the file, and fetches no layer. An archive is told apart from the other kind: `name` says then
// which it is. not_found, denied, unavailable, timed_out, invalid: in the words of the tool, with what to do.
Result<Manifest> ask_for_manifest(ImageName& name, Deadline deadline);

// The same name with the digest that it has now; a pinned name and a bundle stay as they are.
Result<std::string> pin_image(const std::string& image, const std::string& folder, Deadline deadline);

// The same for an engine whose nodes fetch images, by what they know of registries and their logins. not_found: its
// registry says that there is none. unsupported, with why: it cannot be asked from here (no skopeo, no way there, a
// login that only the nodes have), which says nothing of the nodes, or it comes from no registry.
Result<std::string> pin_image_of_nodes(const std::string& image, Deadline deadline);

struct FetchProgress {
    std::function<void(std::int64_t bytes)> fetched;  // of the layers, so far
    std::function<bool()> stop;                       // asked several times a second: give up
};
// Makes FOLDER/bundle of the pinned image, with whatever else it needs on the way in FOLDER.
Status fetch_bundle(const ImageName& name, const std::string& folder, const FetchProgress& progress, Deadline deadline);

// What the tools say, in our words; for tests.
Error error_of_tool(const ImageName& name, const std::string& said);

}  // namespace stoker
