package annotation

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxLogin is the longest Authorization header that HAProxy checks. Most hashes take the longer,
// the longer a password is, and its length is the choice of who sends it.
const MaxLogin = 180

// maxHash is how many microseconds HAProxy may take to check one password. It checks one for
// each request, and no other request of its thread goes on meanwhile.
const maxHash = 5000

// hashKind is a kind of hashes of crypt(3). One of its three times says how long HAProxy takes
// for a login of [MaxLogin] bytes, in microseconds.
type hashKind struct {
	prefixes string // with spaces between
	name     string
	fixed    int     // for each
	perRound float64 // of the rounds that a hash names, or of usualRounds
	atZero   int     // for a cost of 0; each step doubles it
	makes    string  // a command that makes one
}

const usualRounds, leastRounds = 5000, 1000

// hashKinds are the kinds that HAProxy knows, by libxcrypt on a core of 2.9 GHz.
var hashKinds = []hashKind{ // constant in effect
	{prefixes: "$1$", name: "MD5", fixed: 420, makes: "openssl passwd -1"},
	{prefixes: "$5$", name: "SHA-256", perRound: 0.96, makes: "openssl passwd -5"},
	{prefixes: "$6$", name: "SHA-512", perRound: 0.88, makes: "openssl passwd -6"},
	{prefixes: "$2a$ $2b$ $2y$", name: "bcrypt", atZero: 50, makes: "htpasswd -nB"},
	{prefixes: "$y$j75$", name: "yescrypt, cost 1", fixed: 900, makes: "mkpasswd -m yescrypt -R 1"},
	{prefixes: "$y$j85$", name: "yescrypt, cost 2", fixed: 1800, makes: "mkpasswd -m yescrypt -R 2"},
	{prefixes: "$y$j7T$", name: "yescrypt, cost 3", fixed: 3900, makes: "mkpasswd -m yescrypt -R 3"},
	{prefixes: "$y$j8T$", name: "yescrypt, cost 4", fixed: 6700},
	{prefixes: "$y$j9T$", name: "yescrypt, cost 5 (the usual one)", fixed: 15_000},
}

// hash matches the hashes of crypt(3), with the rounds or the cost that they name.
var hash = regexp.MustCompile(`^\$(?:1|5|6|y|2[aby])\$(?:rounds=([0-9]{1,9})\$|([0-9]{2})\$)?[./A-Za-z0-9$=,]{8,150}$`)

// kindOf finds the kind of a hash, and the rounds and the cost that it names; 0: none.
func kindOf(sum string) (kind *hashKind, rounds, cost int) {
	parts := hash.FindStringSubmatch(sum)
	if parts == nil {
		return nil, 0, 0
	}
	rounds, _ = strconv.Atoi(parts[1])
	cost, _ = strconv.Atoi(parts[2])
	for i := range hashKinds {
		for prefix := range strings.FieldsSeq(hashKinds[i].prefixes) {
			if strings.HasPrefix(sum, prefix) {
				return &hashKinds[i], rounds, cost
			}
		}
	}
	return nil, rounds, cost
}

// login is how many microseconds HAProxy takes to check a login.
func (k *hashKind) login(rounds, cost int) int {
	switch {
	case k.perRound > 0 && rounds == 0:
		return int(k.perRound * usualRounds)
	case k.perRound > 0:
		return int(k.perRound * float64(max(rounds, leastRounds)))
	case k.atZero > 0:
		return k.atZero << min(cost, 31)
	}
	return k.fixed
}

// taken says which hashes of the kind are taken.
func (k *hashKind) taken() string {
	switch {
	case k.perRound > 0:
		return fmt.Sprintf("up to %d rounds; it has %d without a number", int(maxHash/k.perRound), usualRounds)
	case k.atZero > 0:
		cost := 0
		for k.login(0, cost+1) <= maxHash {
			cost++
		}
		return fmt.Sprintf("up to a cost of %d", cost)
	case k.fixed > maxHash:
		return "no"
	}
	return "yes"
}
