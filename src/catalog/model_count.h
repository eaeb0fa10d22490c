// How many parameters an architecture has, counted from its shape. Sizing multiplies these by bytes; nobody counts
// twice.
#pragma once

#include "catalog/catalog.h"

namespace stoker {

// Per-layer values are of one layer that has the part at all; the number of such layers stands in `layers` of the
// ModelSpec.
struct ParameterCount {
    double total = 0;
    double active = 0;       // touched by one token: total without the routed experts that are not chosen
    double embedding = 0;    // token table, learned positions, and the output head when it is not tied
    double output_head = 0;  // V h, the matrix behind the logits: part of embedding, whether tied or not
    double per_layer_attention = 0;
    double per_layer_cross_attention = 0;  // decoder layers of an encoder-decoder
    double per_layer_mlp = 0;              // of a dense layer
    double per_layer_expert = 0;           // one routed expert
    double per_layer_shared_expert = 0;    // all shared experts of a layer
    double per_layer_router = 0;
    double per_layer_norms = 0;
    double rest = 0;  // final norms and ModelSpec::extra_parameters

    int dense_layers = 0, moe_layers = 0, decoder_layers = 0;
    double layers_only() const { return total - embedding - rest; }
};

// Zeros for models that are not transformers (ModelSpec::transformer()): theirs is published_parameters.
// Agrees with published counts to 0.5 % for the models of data/models/models.tsv (model_count_test).
ParameterCount count_parameters(const ModelSpec& model);

// What to multiply by bytes: the published count where there is one and the shape is not a transformer's, else counted.
double parameters_of(const ModelSpec& model);
double active_parameters_of(const ModelSpec& model);

}  // namespace stoker
