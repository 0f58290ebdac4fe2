// Command plimsoll-hub runs one replica of the hub. Everything it can be told is in docs/configuration.md.
package main

import "github.com/plimsoll-dev/plimsoll/hub"

func main() { hub.Main() }
