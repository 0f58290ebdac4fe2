package quantities

import "bytes"

const (
	// MaxExponent is the largest decimal exponent that is kept, in either direction: with at most MaxLength digits before it,
	// a larger one means the same, or nothing that a cluster could have.
	MaxExponent = 99
	// MaxLength is how many characters a quantity may have; Kubernetes writes at most 20. A longer one reads as 0.
	MaxLength = 64
)

// Clamp bounds a quantity in place: an exponent beyond [MaxExponent] becomes that, and one that is longer than [MaxLength]
// becomes zeros. White space around it counts for nothing, as for who reads it. What is no quantity stays as it is; the decoder refuses it.
func Clamp(text []byte) {
	text = bytes.TrimSpace(text)
	if len(text) > MaxLength {
		fill(text, '0')
		return
	}
	for i, c := range text {
		if c == 'e' || c == 'E' {
			clampExponent(text[i+1:])
			return
		}
	}
}

// clampExponent bounds what follows the e: a sign, and digits.
func clampExponent(digits []byte) {
	if len(digits) > 0 && (digits[0] == '+' || digits[0] == '-') {
		digits = digits[1:]
	}
	value := 0
	for _, c := range digits {
		if c < '0' || c > '9' {
			return
		}
		value = min(value*10+int(c-'0'), MaxExponent+1)
	}
	if value > MaxExponent {
		fill(digits, '0')
		digits[len(digits)-1], digits[len(digits)-2] = '0'+MaxExponent%10, '0'+MaxExponent/10
	}
}

func fill(text []byte, with byte) {
	for i := range text {
		text[i] = with
	}
}
