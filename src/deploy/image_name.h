// How an image is named: a folder or file of this machine, or a name in a registry. A name is pinned when it has the
// digest of the manifest in it: whoever fetches it, and whenever, gets the same bytes.
//
//     /data/bundle                              an OCI bundle, which runs as it lies there
//     oci:/data/layout@sha256:...               an OCI layout: a folder with index.json
//     oci-archive:/data/image.tar@sha256:...    the same in a file; docker-archive: what `docker save` writes
//     docker.io/library/python:3.12@sha256:...  in a registry
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace stoker {

struct ImageName {
    std::string transport;  // "docker" for a registry, "oci", "oci-archive", "docker-archive"; empty: a bundle
    std::string place;      // "registry:5000/team/image", or an absolute path
    std::string tag;        // of a registry; empty: none
    std::string digest;     // "sha256:..."; empty: not pinned

    std::string text() const;
    std::string registry() const;  // "registry:5000"; empty: it comes from no registry
};

// Relative paths begin at `folder`. A name without a registry is one of docker.io, as everywhere.
Result<ImageName> parse_image_name(std::string_view text, const std::string& folder);

// As Enroot takes it, and with it Pyxis: "nvcr.io#nvidia/pytorch:25.10-py3", "python:3.12". A digest stands where a tag
// would: releases before 4.0 (October 2025) know no "@", and all know this. Empty: it is in no registry.
std::string enroot_name(const ImageName& name);
// The same of what a person wrote; a file stays as it is, since Pyxis reads images of Enroot's from one.
std::string pyxis_image(const std::string& written);

// Whether this is a pinned image, which has to be fetched and unpacked before it can run.
bool is_pinned_image(std::string_view text);
// "sha256:..." at its end; empty when it is not pinned.
std::string digest_of_image(std::string_view text);

}  // namespace stoker
