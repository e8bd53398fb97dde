#pragma once

#include "ftax/nas.hpp"

namespace ftax::nas {

const Space& nasbench201_space();
const Space& fbnet_space();
const Space& ofa_mobilenet_v3_space();
const Space& ofa_resnet_space();
const Space& transformer_space();

/// Splits `text` at `separator` into integers. Throws Error{usage} naming the space, the position and what was
/// expected.
void parse_integers(std::string_view space, std::string_view text, char separator, std::vector<int>& values);

}  // namespace ftax::nas
