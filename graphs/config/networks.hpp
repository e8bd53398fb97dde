#pragma once

#include <string>

#include "ftax/graph.hpp"
#include "graphs/config/families.hpp"
#include "graphs/config/transformer_config.hpp"
#include "src/io/json_document.hpp"

namespace ftax::config {

/// A language model: `seq` new tokens after `past` cached ones, logits of the last one.
[[nodiscard]] Graph build_decoder(std::string name, const TransformerConfig& config);
/// A text encoder of `seq` tokens, with the pooler of BERT or the pooled token of CLIP.
[[nodiscard]] Graph build_encoder(std::string name, const TransformerConfig& config);
/// An image encoder. Reads `image_size`, `patch_size` and `num_channels` from the document.
[[nodiscard]] Graph build_vision(std::string name, const JsonField& document, const TransformerConfig& config);
/// CLIP: both encoders, their projections and the similarity of every text with every image.
[[nodiscard]] Graph build_text_and_vision(std::string name, const JsonField& document);
/// Whisper: the encoder over its 30 s window and one pass of the decoder.
[[nodiscard]] Graph build_speech(std::string name, const JsonField& document, const TransformerConfig& decoder);

}  // namespace ftax::config
