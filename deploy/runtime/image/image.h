// A kernel image: position-independent machine code with its read-only data, complete in itself. The compiler links it
// (compiler/codegen/link_image.h), worker and bundle carry it, this loader maps it.
//
// The form, all numbers little-endian:
//
//   ImageHeader           96 bytes
//   symbol table          symbol_count x ImageSymbol
//   strings               symbol names and the feature text, not terminated
//   (zeros up to a multiple of page_bytes)
//   payload               code, zeros up to a multiple of page_bytes, read-only data
//
// Code and data keep the distance they have in the file, so references between them are resolved when it is linked and
// nothing is left to relocate. There is no writable data, and no symbol is undefined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/runtime/error.h"
#include "deploy/runtime/kernel_abi.h"

namespace hone {

inline constexpr char kImageMagic[8] = {'H', 'O', 'N', 'E', 'I', 'M', 'G', '\n'};
inline constexpr uint32_t kImageVersion = 1;

enum class ImageArch : uint32_t { kX86_64 = 62, kAArch64 = 183, kRiscV64 = 243 };  // the numbers of ELF's e_machine

struct ImageHeader {
  char magic[8];
  uint32_t version;
  uint32_t arch;
  uint64_t total_bytes;  // of the whole image, header included
  uint64_t checksum;     // Hash64 of all bytes, this field taken as zero
  uint32_t page_bytes;   // a power of two, at least 4096: what payload and data are aligned to
  uint32_t symbol_count;
  uint64_t strings_bytes;
  uint32_t features_at;  // in strings
  uint32_t features_bytes;
  uint64_t payload_at;  // from the start of the image
  uint64_t code_bytes;  // code starts the payload
  uint64_t data_at;     // from the start of the payload, a multiple of page_bytes
  uint64_t data_bytes;
  uint64_t reserved;
};
static_assert(sizeof(ImageHeader) == 96);

struct ImageSymbol {
  uint32_t name_at;  // in strings
  uint32_t name_bytes;
  uint64_t code_offset;  // from the start of the code
};
static_assert(sizeof(ImageSymbol) == 16);

// What a linker hands over. Data must start at DataOffset(arch, code.size()) from the start of the code.
struct ImageParts {
  struct Symbol {
    std::string name;
    uint64_t code_offset = 0;
  };
  ImageArch arch = ImageArch::kX86_64;
  std::string features;         // CPU features the code needs, "avx2,fma": names as in cpu_features.h
  std::vector<Symbol> symbols;  // names are unique
  std::string code;
  std::string data;  // read-only
};
uint32_t ImagePageBytes(ImageArch arch);                   // the largest page that systems of it use
uint64_t DataOffset(ImageArch arch, uint64_t code_bytes);  // code_bytes rounded up to a page
std::string WriteImage(const ImageParts& parts);
// Checks every number and the checksum, for any architecture. Nothing is executed or mapped.
RuntimeResult<ImageParts> ReadImage(std::string_view bytes);
// What Image::Load would refuse the image for on this machine, memory apart. Nothing is executed or mapped.
RuntimeError CheckImage(std::string_view bytes);

// An image mapped for execution. A process may hold many; kernels found in it are valid while it lives. Code is
// readable and executable, data readable, never writable again. Movable; safe to use from several threads.
class Image {
 public:
  // Copies the bytes into fresh memory. Fails with kCorrupt (any number out of range, checksum), kUnsupported (another
  // architecture or version, a CPU feature this machine lacks, named in the message) or kOutOfMemory.
  static RuntimeResult<Image> Load(std::string_view bytes);

  // nullptr when there is no such symbol.
  HoneKernelFn Find(std::string_view symbol) const;
  const std::vector<ImageParts::Symbol>& symbols() const { return symbols_; }
  const std::string& features() const { return features_; }

  Image(Image&&) noexcept = default;
  Image& operator=(Image&&) noexcept = default;

 private:
  struct Unmap {
    size_t bytes;
    void operator()(char* base) const;
  };
  Image() : base_(nullptr, Unmap{0}) {}

  std::unique_ptr<char, Unmap> base_;  // the whole mapping: code, then data
  std::string features_;
  std::vector<ImageParts::Symbol> symbols_;  // by name
};

}  // namespace hone
