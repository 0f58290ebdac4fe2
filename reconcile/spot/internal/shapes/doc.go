// Package shapes keeps what is known about the shapes of pods, their scheduling requirements as text, in little memory.
//
//   - interned.go: one copy of equal texts ([Interned]);
//   - kept.go: texts that no object in a cache has, and what they may take ([Keeper]);
//   - parsed.go: what texts say, as long as there is room ([Parser]);
//   - search.go: which shortages any shape is about ([Search]).
package shapes
