#include "workload/unknown_models.h"

#include <utility>

#include "base/text.h"
#include "catalog/names.h"

namespace stoker {
namespace {

struct UnknownKind {
    std::string_view words;  // beginnings of names, as fold_name() leaves them; of three letters or less: first words
    std::string_view remedy;
    std::string_view served = {};  // where it answers requests and that is written in another way
};

// The first that fits.
constexpr UnknownKind kUnknownKinds[] = {
    {"gpt4 gpt5 gpt35 chatgpt claude gemini o1mini o1preview o3mini o4mini grok3 grok4 textembedding midjourney "
     "dalle sora",
     "its weights are not published, so that no machine of yours runs it: plan an open model in its place, such as "
     "gpt-oss-120b, llama-3.3-70b or qwen3-32b, and compare its tokens with what the provider asks (or buy, in the "
     "answer)"},
    {"xgboost lightgbm lgbm catboost gbdt gbm gradientboost randomforest decisiontree sklearn scikitlearn "
     "logisticregression linearregression svm kmeans knn prophet arima autogluon",
     "trees and linear models are sized by what they took so far: kind: preprocessing with memory: 160GB (about twice "
     "the table) and vcpu_hours: 60; on a GPU gpu_hours: 2"},
    {"dlrm dcn deepfm wideanddeep widedeep widendeep twotower ncf neumf sasrec bert4rec hstu dien recsys recommend "
     "matrixfactorization collaborativefiltering",
     "a recommender is given by its size: model: {kind: cnn, parameters: 500M, forward_flops: 30e6, activation_bytes: "
     "50kB, sample_unit: row}; parameters counts the embedding tables, the FLOP are those of one row, and optimizer: "
     "sgd keeps one state less of each. What lookups of tables over several machines take is not planned"},
    {"gcn gat graphsage rgat rgcn ginconv gnn graphnet graphormer schnet dimenet mace nequip allegro pyg dgl",
     "a graph network is given by what one sampled subgraph takes: model: {kind: cnn, parameters: 2M, forward_flops: "
     "1e9, activation_bytes: 40MB, sample_unit: subgraph}, and data: {examples: ...} counts subgraphs"},
    {"yolo rtdetr detr efficientdet fasterrcnn fcos segformer mask2former maskformer deeplab sam2 samvit "
     "segmentanything "
     "hrnet pspnet swinunet nnformer resnest",
     "what its card calls GFLOPs is enough: model: {kind: cnn, parameters: 26M, forward_flops: 79e9, activation_bytes: "
     "400MB, sample_unit: image}; a card that counts multiply-adds (GMACs) gives half of it"},
    {"wav2vec hubert wavlm data2vec conformer parakeet canary fastconformer seamless encodec musicgen bark xtts vits "
     "tacotron kokoro f5tts cosyvoice speecht5",
     "its size is enough: model: {kind: encoder, parameters: 300M} (decoder where it speaks), with data: {sequence: "
     "1500, tokens: ...}: 50 frames for each second of sound",
     "its size is enough. What listens: model: {kind: encoder, parameters: 600M} and traffic: {prompt_tokens: 500}, 50 "
     "frames for each second of sound; what speaks: model: {kind: decoder, parameters: 450M} and traffic: "
     "{prompt_tokens: 60, output_tokens: 500}, as many codes as it makes of the answer's seconds"},
    {"mamba rwkv jamba zamba falconmamba codestralmamba recurrentgemma griffin xlstm hyena retnet",
     "its size is enough: model: {parameters: 2.8B}. It is planned as a transformer of that size: a model that keeps a "
     "state in place of keys and values needs less memory for long sequences than is said"},
    {"alphafold openfold esmfold rosettafold boltz chai1 proteinmpnn rfdiffusion evo2 nucleotidetransformer dnabert "
     "hyenadna graphcast fourcastnet panguweather climax geneformer scgpt progen prott5 protbert",
     "its size is enough where it reads sequences: model: {kind: encoder, parameters: 650M} and data: {sequence: 512, "
     "tokens: ...}; of one that folds, the FLOP and activations of a crop: model: {kind: cnn, parameters: 93M, "
     "forward_flops: 5e12, activation_bytes: 8GB, sample_unit: crop}"},
};

// gat of GATv2-large: letters up to the first of anything else, without the v of a version.
std::string first_word(std::string_view name) {
    std::string word;
    for (const char c : lower(name)) {
        if (c < 'a' || c > 'z') break;
        word.push_back(c);
    }
    if (word.size() > 1 && word.size() < name.size() && word.back() == 'v') word.pop_back();
    return word;
}

bool begins(std::string_view name, std::string_view word) {
    constexpr std::size_t kShort = 3;
    return word.size() <= kShort ? first_word(name) == word : std::string_view(fold_name(name)).starts_with(word);
}

}  // namespace

std::string remedy_for_unknown_model(std::string_view name, bool served) {
    const std::string_view last = name.substr(name.rfind('/') + 1);
    for (const UnknownKind& kind : kUnknownKinds)
        for (const std::string_view word : split(kind.words, ' '))
            if (begins(last, word)) return std::string(served && !kind.served.empty() ? kind.served : kind.remedy);
    return {};
}

std::pair<Error, std::string> of_unknown_model(std::string_view name, const Error& not_found, bool served) {
    std::string remedy = remedy_for_unknown_model(name, served);
    if (!remedy.empty())
        return {Error(ErrorKind::not_found, "no model named " + std::string(name.substr(0, 100))), std::move(remedy)};
    return {not_found,
            "stoker catalog models lists what is known; or give {config: path/to/config.json}, or "
            "{parameters: 7B}"};
}

}  // namespace stoker
