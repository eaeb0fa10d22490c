// What hardware, VM sizes, regions, prices, images and model architectures exist, and since when.
// Built once from the embedded data files (or a folder given with --catalog), then read-only and shared freely between
// threads. Facts live in data/catalog and data/models; see docs/reference/catalogue-data.md.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace stoker {

// The order is the index into per-precision arrays.
enum class Precision : std::uint8_t { fp32, tf32, fp16, bf16, fp8, int8, int4, fp4 };
inline constexpr int kPrecisions = 8;
std::string_view to_string(Precision precision);
std::optional<Precision> precision_from(std::string_view text);
const std::vector<std::string>& precision_names();
// Bytes of one stored weight. tf32 is stored as fp32; int4 and fp4 with their scales: 0.5625 (absmax per 64, arXiv
// 2305.14314).
double bytes_per_weight(Precision precision);

// Where a fact comes from.
struct Provenance {
    std::string source;
    std::string as_of;  // YYYY-MM-DD, may be empty
};

// How ranks on one machine, or machines, talk. Effective bandwidth of a message of S bytes is max * S / (S +
// half_size).
struct Link {
    std::string name;
    BytesPerSecond bandwidth;  // per GPU, one direction, bus bandwidth of large all-reduces
    Seconds latency;           // per hop
    Bytes half_size;
    Provenance provenance;
};

// A part that the owner of a GPU may cut it into (MIG, data/catalog/mig_profiles.tsv).
struct MigProfile {
    std::string name;  // 1g.10gb, as nvidia-smi has it
    int sms = 0;       // multiprocessors that compute for it
    Bytes memory;
    int most = 0;  // of this kind on one GPU
};

struct Accelerator {
    std::string name, vendor, kind, architecture;
    int year = 0;
    Bytes memory;         // nominal
    Bytes usable_memory;  // what the driver reports as total
    BytesPerSecond memory_bandwidth;
    // Dense peaks, 0 when the device has no such unit; int8 and int4 in operations/s.
    std::array<FlopsPerSecond, kPrecisions> peak{};
    // Best matmul anyone published, 0 when unknown.
    FlopsPerSecond measured_bf16, measured_fp8;
    std::string scale_up;               // NVLink 4, Infinity Fabric, none
    BytesPerSecond scale_up_bandwidth;  // per GPU and direction; 0: none
    int scale_up_domain = 1;            // most GPUs that one switch (or bridge) joins
    BytesPerSecond host_bandwidth;      // PCIe, one direction
    Watts power, idle_power;
    int sm_count = 0, cuda_cores = 0, tensor_cores = 0;
    std::uint32_t supports = 0;  // bit per Precision
    // Formats that engines keep weights in and widen on the way to units that do not multiply them; bit per Precision.
    std::uint32_t weight_formats = 0;
    std::vector<std::string> aliases;
    std::vector<MigProfile> mig;  // empty: it cannot be cut
    // Chips that are no GPU: the only clouds that rent them, what a program is built with, and what does not carry
    // over. Empty for GPUs. Catalog::nvidia_alternative() says what to compare with.
    std::vector<std::string> clouds;
    std::string toolchain, lock_in;
    Provenance provenance;
    std::string note;

    bool is_gpu() const { return kind == "gpu"; }  // else tpu, asic or fpga
    bool has(Precision p) const { return (supports >> static_cast<int>(p)) & 1u; }
};

struct Cpu {
    std::string name, vendor;
    double ghz = 0, fp32_flop_per_cycle = 0, bf16_flop_per_cycle = 0;  // per physical core
    BytesPerSecond memory_bandwidth_per_core;
    bool measured = false;  // the FLOP per cycle are of a matrix product that ran, not of the data sheet
    Provenance provenance;
};

// Of a machine of one's own whose GPUs are cut into parts: the machine. The node type is one part with its share.
struct MigCut {
    std::string profile;
    int per_gpu = 0, gpus = 0;
    int vcpus = 0;  // of the machine, as the memory
    Bytes memory;
    int machines = 0;  // 0: not said
    int parts() const { return per_gpu * gpus; }
};

// One machine type that can be had: a VM size of a cloud, or an on-prem node.
struct NodeType {
    std::string name;          // Standard_ND96isr_H100_v5, p5.48xlarge, or the user's own
    std::string cloud;         // azure, aws, gcp, nebius, ..., on-prem, this-machine
    std::string family;        // series as the vendor names it: NCasT4_v3
    std::string purpose;       // training, inference, visualisation, hpc, general, compute, memory
    std::string quota_family;  // verbatim, with its spaces
    int vcpus = 0;
    int cores = 0;  // physical
    Bytes memory;
    int accelerator = -1;         // index into Catalog::accelerators(), -1: CPU only
    double accelerators = 0;      // 8, 1, or a fraction such as 1/6
    Bytes accelerator_memory;     // of the part one VM gets, each
    int scale_up_domain = 1;      // GPUs joined by NVLink or the like on this node (72: across nodes of one rack)
    bool scale_up_pairs = false;  // only bridged pairs are fast
    int link_inside = -1;         // index into links: between GPUs of one node (with scale_up_pairs: across the pairs)
    int link_pair = -1;           // with scale_up_pairs: between the two GPUs of a bridged pair
    int link_across = -1;         // index into links: between nodes, per GPU where RDMA, per node otherwise
    double rdma_gbps_per_gpu = 0, rdma_gbps_per_node = 0;  // 0: no RDMA network
    std::string rdma;                                      // infiniband, efa, roce, none
    std::string rdma_generation;                           // HDR, NDR, ...
    double ethernet_gbps = 0;
    int nics = 0;
    double nvme_gib = 0, temp_disk_gib = 0;
    std::string generations, trusted_launch, accelerated_networking;
    int cpu = -1;                 // index into cpus, -1 unknown
    bool cpu_assumed = false;     // of one's own, whose description does not name it
    int available = 0;            // how many of it exist: on-prem; 0: no limit of its own
    std::optional<MigCut> mig;    // it is a part of a GPU, that its owner cuts
    std::string status;           // current, retired, announced, ...
    std::string retirement_date;  // YYYY-MM-DD or empty
    Provenance provenance;
    std::string note;

    bool has_gpu() const { return accelerator >= 0 && accelerators > 0; }
    std::string rdma_name() const;  // HDR, NDR, EFA: the generation where it has one
    // Sizes with constrained cores (Standard_HB120-64rs_v2: 64 of 120) count their full size in quota and price and
    // leave the rest switched off.
    int usable_vcpus() const;
    int whole_gpus() const { return static_cast<int>(accelerators); }  // 0 for a fraction
};

enum class Pricing : std::uint8_t { on_demand, spot, reserved_1y, reserved_3y, owned };
std::string_view to_string(Pricing pricing);

struct Price {
    int node_type = -1;
    std::string region;
    std::string os;  // linux, windows
    Pricing pricing = Pricing::on_demand;
    Usd per_hour;              // one node
    double low = 0, high = 0;  // dollars; equal to per_hour unless it is an estimate (spot from a published bracket)
    bool estimate = false;
    Provenance provenance;
};

struct Retirement {
    std::string what, kind, size, date, status, target, note;
    Provenance provenance;
};

struct Image {
    std::string name, publisher, urn, os, generation, architecture, good_for, note;
    std::vector<std::string> contains;       // in the words of images.tsv: ofed, nccl, mpi, nvidia-driver, ...
    std::vector<std::string> orchestrators;  // that can start it: aks, vmss, cyclecloud-slurm, batch, azure-ml, local
    std::vector<std::string> extend;         // how more software gets in: cloud-init, custom-image, container, ...
    std::string terms;                       // yes: a plan whose terms have to be accepted; no; empty: not known
    Provenance provenance;
};

// A size of a managed disk. IOPS and MB/s are limits, for Premium SSD what is provisioned.
struct DiskTier {
    std::string name, kind;  // P30, premium-ssd
    double gib = 0, iops = 0, mb_s = 0;
    double usd_per_month = 0;  // 0: no price was seen
    std::string price_region, price_source, note;
    Provenance provenance;
};

enum class ModelKind : std::uint8_t { decoder, encoder, encoder_decoder, cnn, vit, diffusion };
std::string_view to_string(ModelKind kind);
inline bool is_image(ModelKind kind) {  // its data are images, not sequences of tokens
    return kind == ModelKind::cnn || kind == ModelKind::vit || kind == ModelKind::diffusion;
}
enum class AttentionKind : std::uint8_t { mha, gqa, mla };

// What one request of a model is, where it is not one pass over one sample (data/models/requests.tsv).
struct RequestShape {
    std::string unit;  // "image"; empty: see ModelSpec::request_unit
    double steps = 0;  // of denoising, each a pass (with guidance two); 0: not a diffusion model, or not known
    bool guidance = false;
    double once_flops = 0, once_parameters = 0;  // encoders before the steps and decoder behind them
    double window_s = 0, window_tokens = 0;      // speech: what the encoder hears at once, and its positions
    double output_tokens_per_s = 0;              // of speech
    Provenance provenance;
};

// An architecture, as its config.json gives it. Counted in catalog/model_count.h.
struct ModelSpec {
    std::string name, family;
    ModelKind kind = ModelKind::decoder;
    std::vector<std::string> aliases;
    double published_parameters = 0;  // 0: unknown
    int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocabulary = 0, max_sequence = 0;
    int decoder_layers = 0;  // encoder_decoder: how many of `layers` (both stacks together) also cross-attend
    bool gated = true, tied_embeddings = false, biases = false, layer_norm = false;  // layer_norm false: RMSNorm
    AttentionKind attention = AttentionKind::gqa;
    int experts = 0, active_experts = 0, expert_ffn = 0, shared_expert_ffn = 0, dense_layers = 0;  // experts 0: dense
    int q_lora_rank = 0, kv_lora_rank = 0, rope_head_dim = 0, nope_head_dim = 0, v_head_dim = 0;   // MLA
    int sliding_window = 0, learned_positions = 0;
    int routed_groups = 0;        // experts lie in groups, a node each; a token's are of at most so many. 0: of any
    int embedding_width = 0;      // of the token table, where a projection widens it to `hidden`; 0: hidden
    double extra_parameters = 0;  // pooler, token types, convolutional front end: what the shape above does not have
    double forward_flops_per_sample = 0, activation_bytes_per_sample = 0;  // cnn, vit, diffusion
    // Of both, the share of layers that are left as they were trained before: forward only, and nothing is kept.
    double frozen_flops_per_sample = 0, frozen_activation_bytes = 0;
    double winograd_flops_per_sample = 0;  // of forward_flops_per_sample: 3 x 3 convolutions, stride 1, no groups
    bool transformer_denoiser = false;     // diffusion: attention over all patches, and no UNet
    bool separate_norm = false;  // normalisation passes over the maps by itself: of instances, in three dimensions
    double image_size = 0;       // pixels of an edge, of which the work of a sample is counted; 0: not square
    std::string sample_unit = "token";
    RequestShape request;
    std::optional<Precision> published_precision;  // of the weights that its makers publish; absent: 16 bits
    std::optional<Precision> trained_precision;    // what its makers computed in; absent: 16 bits
    Provenance provenance;
    bool assumed = false;    // shape scaled from the nearest known architecture
    std::string assumption;  // in words, when assumed

    bool transformer() const { return layers > 0 && hidden > 0; }
    bool moe() const { return experts > 1; }
    std::string request_unit() const;  // "image", "audio clip", "request": what people ask it for
};

// A named constant of the model of cost, with its spread and where it comes from (data/catalog/defaults.tsv).
struct Constant {
    std::string name, unit, note;
    double value = 0, low = 0, high = 0;
    Provenance provenance;
};

// The bracket of spot price over list price published for an accelerator.
struct SpotRatio {
    int accelerator = -1;
    double low = 0, high = 0;
    Provenance provenance;
};

// A model found by a name that says more than its shape.
struct ModelMatch {
    int index = -1;
    std::optional<Precision> precision;  // that the name says its weights are packed in
};

struct CatalogFile {
    std::string path;  // relative to the data folder, e.g. "catalog/accelerators.tsv"
    std::string_view bytes;
};

std::string short_size(std::string_view name);  // a size without Standard_

class Catalog {
public:
    static Result<Catalog> embedded();
    // Without the fitted constants of data/calibration/NAME.tsv: what they are fitted from.
    static Result<Catalog> embedded_unfitted(std::string_view name);
    static Result<Catalog> from_files(std::span<const CatalogFile> files);

    std::string version;  // 2026-11
    std::string as_of;    // 2026-11-20
    std::string origin;   // "embedded" or the folder

    const std::vector<Accelerator>& accelerators() const { return accelerators_; }
    const std::vector<Cpu>& cpus() const { return cpus_; }
    const std::vector<Link>& links() const { return links_; }
    const std::vector<NodeType>& node_types() const { return node_types_; }
    const std::vector<Price>& prices() const { return prices_; }  // sorted by (node_type, region, os, pricing)
    const std::vector<Retirement>& retirements() const { return retirements_; }
    const std::vector<Image>& images() const { return images_; }
    const std::vector<DiskTier>& disks() const { return disks_; }
    const std::vector<ModelSpec>& models() const { return models_; }
    const std::vector<Constant>& constants() const { return constants_; }
    const std::vector<SpotRatio>& spot_ratios() const { return spot_ratios_; }

    // Sizes that the price lists have and the size tables do not; sorted. Their prices are left out.
    const std::vector<std::string>& priced_without_shape() const { return priced_without_shape_; }

    // Finders ignore case and separators, know aliases, and name the nearest word when they find nothing.
    Result<int> find_accelerator(std::string_view name) const;
    Result<int> find_node_type(std::string_view name) const;
    Result<int> find_model(std::string_view name) const;
    // The same, after leaving out what does not change the shape: owner, -Instruct, -it, dates, packing.
    Result<ModelMatch> match_model(std::string_view name) const;
    Result<int> find_image(std::string_view name) const;  // by name or URN
    Result<int> find_disk(std::string_view name) const;
    // The NVIDIA GPU that some size has and that is nearest in memory, bandwidth and rate; -1 for an NVIDIA GPU.
    int nvidia_alternative(int accelerator) const;
    Result<std::string> find_region(std::string_view cloud, std::string_view name) const;
    std::span<const Price> prices_of(int node_type) const;
    const Price* price(int node_type, std::string_view region, std::string_view os, Pricing pricing) const;
    const Constant* constant(std::string_view name) const;
    double constant_or_die(std::string_view name) const;  // a missing one is a bug in the data: exit 4
    std::vector<std::string> regions_of(std::string_view cloud) const;

    // Adding facts of the user's own: an on-prem node, a price page, this machine. Returns the new index.
    int add_accelerator(Accelerator accelerator);
    int add_node_type(NodeType node_type);
    int add_link(Link link);
    int add_cpu(Cpu cpu);
    void replace_constant(Constant constant);        // by name; one that is not there is not added
    void replace_price(Price price);                 // by (node_type, region, os, pricing)
    void replace_prices(std::vector<Price> prices);  // the last of equals wins; one merge, however many
    // Where a listed on-demand price of Azure has no spot price beside it, puts one in from the published bracket,
    // marked estimate. Called by whoever has changed list prices; an estimate follows the list price it was made from.
    void estimate_missing_spot_prices();
    NodeType& node_type(int index) { return node_types_[static_cast<std::size_t>(index)]; }

private:
    friend class CatalogReader;
    std::vector<Accelerator> accelerators_;
    std::vector<Cpu> cpus_;
    std::vector<Link> links_;
    std::vector<NodeType> node_types_;
    std::vector<Price> prices_;
    std::vector<Retirement> retirements_;
    std::vector<Image> images_;
    std::vector<DiskTier> disks_;
    std::vector<ModelSpec> models_;
    std::vector<Constant> constants_;
    std::vector<SpotRatio> spot_ratios_;
    std::vector<std::string> priced_without_shape_;
    std::map<std::string, std::vector<std::string>, std::less<>> regions_;                       // by cloud, sorted
    std::map<std::string, int, std::less<>> accelerator_index_, node_type_index_, model_index_;  // by fold_name

    void note_region(std::string_view cloud, std::string_view region);
};

}  // namespace stoker
