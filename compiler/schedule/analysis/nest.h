// What primitives share about nests of loops: ranges, bindings, predicates.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/arith/analyzer.h"
#include "compiler/ir/condition.h"
#include "compiler/ir/stmt.h"
#include "compiler/ir/thread_axes.h"
#include "compiler/ir/visit.h"
#include "compiler/schedule/analysis/program_index.h"

namespace hone {

// The ranges of every loop around a node, through the blocks it lies in.
VarRanges RangesAround(const ProgramIndex& index, int node);
// The same, and of every loop below it.
VarRanges RangesAroundAndBelow(const ProgramIndex& index, int node);

// How many threads a block has along x, y and z by the loops around a node, itself among them; nullopt where that is no
// constant.
std::optional<ThreadExtents> ThreadsAround(const ProgramIndex& index, int node);

// Substitutes in everything below (and in) `root`, adds `guard` (absent: none) to the predicate of the blocks directly
// below it, and simplifies their bindings. `known` knows the loops around `root`.
Stmt RewriteBindings(const Stmt& root, const VarMap& map, const Expr& guard, Analyzer& known);

// a and b, without parts that are there twice.
Expr Conjoin(const Expr& a, const Expr& b);

// The parts of the predicate that are not certain for an instance whose iteration variables lie in their domains.
std::vector<Expr> PartsBeyondDomain(const BlockRealize& realize, const VarRanges& loops);
// Returns whether all instances whose iteration variables lie in their domains satisfy the predicate. Then the domain
// alone says what the block computes, and its loops can be made anew.
bool PredicateFollowsFromDomain(const BlockRealize& realize, const VarRanges& loops);

// Loops, innermost first, with the variables of copies of them.
using LoopCopies = std::vector<std::pair<const For*, Var>>;
// From the variables of the loops to those of their copies; nullopt for others.
VarMap RenameTo(const LoopCopies& copies);
// The copies around `body`, with their bounds in terms of one another's variables.
Stmt WrapInCopies(const LoopCopies& copies, Stmt body);

// A loop of its own around a body.
Stmt MakeLoop(const Var& var, const Expr& extent, Stmt body, ForKind kind = ForKind::kSerial);
// The statement with another body.
Stmt WithBody(const For& loop, Stmt body);

std::string Describe(ForKind kind);  // "serial", "parallel", ..

// NAME, or NAME_1, .. : a name no block of the program has.
std::string FreshBlockName(const ProgramIndex& index, const std::string& name);

}  // namespace hone
