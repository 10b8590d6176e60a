// A model's file as a stream that is read once, and the digest of what was read: what is decoded is what it is of.
#pragma once

#include <google/protobuf/io/zero_copy_stream.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "compiler/support/sha256.h"

namespace hone {

// The digest is made on a thread of its own, a few pieces behind the reader: it takes longer than decoding does.
class ModelFile : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit ModelFile(int descriptor);  // which it closes
  ~ModelFile() override;
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  bool Next(const void** data, int* size) override;
  void BackUp(int count) override { backed_up_ = count; }
  bool Skip(int count) override;
  int64_t ByteCount() const override { return bytes_ - backed_up_; }

  int error() const { return error_; }  // errno of a read that failed, after which there is no more
  std::string Digest();                 // SHA-256 of all that was read; once, and nothing is read afterwards

 private:
  static constexpr size_t kPieceBytes = 1 << 20, kPieces = 4;
  struct Piece {
    std::unique_ptr<char[]> memory;
    size_t size = 0;
  };
  void DigestPieces();
  void EndDigest();

  const int descriptor_;
  int error_ = 0, backed_up_ = 0;
  int64_t bytes_ = 0;
  std::array<Piece, kPieces> pieces_;  // piece i of the file in place i % kPieces
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t read_ = 0, digested_ = 0;  // pieces
  bool ended_ = false;
  Sha256Stream digest_;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace hone
