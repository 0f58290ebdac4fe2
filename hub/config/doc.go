// Package config is the hub's configuration: every key with its default, read from a file and from the environment, and checked
// as a whole before anything starts.
//
// It starts nothing, and reads nothing but the file and the variables that it is given.
//
// Where to look:
//
//   - config.go: every key with its default and its description; docs/configuration.md is made from it.
//   - load.go: the order of sources; decode.go: YAML into keys; env.go: the variable of each key.
//   - validate.go: what values may be, alone and together.
//   - predecessor.go: files of Spotalis, and what takes the place of their keys.
//   - modules.go: the sections of modules, which know what may be in them.
//   - spot.go, moves.go: values of package spot, made of keys.
package config
