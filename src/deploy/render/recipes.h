// What other programs call the models of the catalogue, and which images they are shipped in (data/render).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/deployment.h"

namespace stoker {

struct Recipe {
    std::string module, config, source, as_of;
};
// What `program` (torchtitan, nemo) calls its configuration of this model; none: it ships none.
std::optional<Recipe> recipe_of(std::string_view program, std::string_view model);
// By its name, or another one that the catalogue has of it.
std::optional<Recipe> recipe_of(std::string_view program, const ModelSpec& model);
// "llama-3-8b, llama-3-70b"
std::string recipes_of(std::string_view program);

// Rotary embeddings of a model: the base of their frequencies and, where they were stretched as Llama 3.1's, by how
// much; none: not known here.
struct RotaryShape {
    std::string base, scaling, source, as_of;
};
std::optional<RotaryShape> rotary_of(std::string_view model);

struct EngineImage {
    std::string image, source, as_of;
};
// The image in which an engine is published for GPUs of this vendor ("NVIDIA", "AMD", "" for CPUs).
std::optional<EngineImage> engine_image(std::string_view engine, std::string_view vendor);
// The same for the GPUs and the release of a deployment. Nothing where its release is of an image whose tags say more
// than the release.
std::optional<EngineImage> engine_image(std::string_view engine, const Deployment& deployment);
// What is put into a cluster by its release: "network-operator" is 25.10.0.
struct Release {
    std::string release, source;
};
Release release_in_use(std::string_view program);
// NVIDIA's package of the driver for these GPUs: the open one, but for those that it does not know.
std::string driver_package(std::string_view gpu);
// What Kubernetes calls the devices of a vendor: "nvidia.com/gpu"; empty: no plug-in is known.
std::string resource_of_vendor(std::string_view vendor);
// The image of a VM on Azure for GPUs of this vendor, or for none.
struct VmImage {
    std::string urn, source;
};
VmImage vm_image(std::string_view vendor);

// What GKE calls the GPUs of a machine type ("a2-highgpu-1g"): "nvidia-tesla-a100"; empty: not known here.
std::string gke_accelerator(std::string_view machine);
// Names behind which a registry of images lies, or what else guarded machines need ("packages", "weights",
// "measurements"); of a registry that is not known its own name.
std::vector<std::string> names_reached_for(std::string_view what);
// "ghcr.io" of "ghcr.io/acme/work:1.4"; docker.io where the image names none.
std::string registry_of(std::string_view image);

}  // namespace stoker
