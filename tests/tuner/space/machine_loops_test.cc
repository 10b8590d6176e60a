#include "tests/tuner/space/machine_loops.h"

#include <gtest/gtest.h>

namespace hone::testing {
namespace {

void ExpectCounts(const MachineLoop& loop, int multiply_adds, int unfused, int to_stack, int from_stack, int branches) {
  EXPECT_EQ(loop.multiply_adds, multiply_adds) << loop.text;
  EXPECT_EQ(loop.unfused, unfused) << loop.text;
  EXPECT_EQ(loop.to_stack, to_stack) << loop.text;
  EXPECT_EQ(loop.from_stack, from_stack) << loop.text;
  EXPECT_EQ(loop.branches, branches) << loop.text;
}

TEST(MachineLoops, OfX86) {
  const std::vector<MachineLoop> loops = LoopsOfMultiplyAdds(R"(
	.globl	kernel
kernel:
	vmovaps	%ymm1, 32(%rsp)
.LBB0_1:
	vfmadd231ps	(%rax), %ymm0, %ymm1
.LBB0_2:
	vmovaps	%ymm0, 32(%rsp)
	vfmadd231ps	(%rbp), %ymm0, %ymm1
	vfmadd231ps	64(%rsp), %ymm0, %ymm2
	vmulps	%ymm0, %ymm0, %ymm3
	movq	8(%rsp), %rcx
	je	.LBB0_3
	vaddps	%ymm0, %ymm3, %ymm3
.LBB0_3:
	jne	.LBB0_2
	jmp	.LBB0_1
framed:
	movq	%rsp, %rbp
.LBB1_1:
	vfmadd231ps	-64(%rbp), %zmm0, %zmm1
	jne	.LBB1_1
)");
  ASSERT_EQ(loops.size(), 2u);
  ExpectCounts(loops[0], 2, 2, 1, 1, 2);
  ExpectCounts(loops[1], 1, 0, 0, 1, 1);
}

TEST(MachineLoops, OfAArch64) {
  const std::vector<MachineLoop> loops = LoopsOfMultiplyAdds(R"(
kernel:
.LBB0_1:
	ldp	q0, q1, [sp, #32]
	fmla	v0.4s, v1.4s, v2.s[0]
	fmla	v3.4s, v1.4s, v2.s[1]
	str	q3, [sp, #16]
	str	x8, [sp, #8]
	ldr	q4, [x29]
	fadd	v4.4s, v4.4s, v4.4s
	cbnz	x9, .LBB0_1
	b	.LBB0_2
.LBB0_2:
	ldr	q4, [sp]
	b.ne	.LBB0_2
)");
  ASSERT_EQ(loops.size(), 1u);
  ExpectCounts(loops[0], 2, 1, 1, 1, 1);
}

}  // namespace
}  // namespace hone::testing
