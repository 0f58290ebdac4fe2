package main

// wantedSpot is how many of n replicas ought to be on spot capacity, by the definition in docs/spot.md and not by the code
// that is checked: the most that are no more than percent of n and leave floor replicas on-demand; none if that cannot be.
func wantedSpot(n, percent, floor int) int {
	for spot := n; spot > 0; spot-- {
		if spot*100 <= n*percent && n-spot >= floor {
			return spot
		}
	}
	return 0
}
