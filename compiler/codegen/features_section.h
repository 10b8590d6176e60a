// The name of the section in which an object states the CPU features its code needs, separated by commas.
#pragma once

namespace hone {

inline constexpr char kFeaturesSection[] = ".hone.features";

}  // namespace hone
