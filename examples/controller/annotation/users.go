package annotation

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// User is a user with the hash of a password.
type User struct{ Name, Hash string }

// String hides the hash.
func (u User) String() string { return u.Name }

// GoString hides the hash.
func (u User) GoString() string { return u.Name }

// maxUsers bounds the users of a Secret: HAProxy goes through them for each request.
// maxRounds and maxCost bound the time for checking a password: 55 ms.
const maxUsers, maxRounds, maxCost = 1000, 50_000, 10

// hash matches the hashes of crypt(3) with many rounds: $1$, $5$, $6$, $y$, $2a$, $2b$, $2y$.
var hash = regexp.MustCompile(`^\$(?:1|5|6|y|2[aby])\$(?:rounds=([0-9]{1,9})\$|([0-9]{2})\$)?[./A-Za-z0-9$=,]{8,150}$`)

// yescrypt matches those of at most the usual cost. Heavier ones take seconds, and 1 GB.
var yescrypt = regexp.MustCompile(`^\$y\$j(?:[78]5|[789]T)\$`)

// Cost is how many microseconds HAProxy needs to check a password of the user. It also
// does so for each user when it reads its configuration.
func (u User) Cost() int {
	parts := hash.FindStringSubmatch(u.Hash)
	if len(parts) != 3 {
		return 0
	}
	rounds, _ := strconv.Atoi(parts[1])
	cost, _ := strconv.Atoi(parts[2])
	switch kind := u.Hash[:2]; {
	case cost > 0: // each step doubles it
		return 55_000 >> max(0, maxCost-cost)
	case kind == "$y":
		return 25_000
	case kind == "$1":
		return 300
	}
	return max(rounds, 5000) / 3
}

// Users reads a file of htpasswd, or one user from each key. An error never holds a hash.
func Users(data map[string][]byte, byKey bool) ([]User, error) {
	file, ok := data["auth"]
	var users []User
	if ok && !byKey {
		n := 0
		for line := range bytes.Lines(file) {
			n++
			line := strings.TrimSpace(string(line))
			if line == "" || line[0] == '#' {
				continue
			}
			name, sum, _ := strings.Cut(line, ":")
			if err := checkUser(name, sum); err != nil {
				return nil, fmt.Errorf("line %d of its key auth: %w", n, err)
			}
			if users = append(users, User{name, sum}); len(users) > maxUsers {
				break
			}
		}
	} else {
		for _, name := range slices.Sorted(maps.Keys(data)) {
			sum := strings.TrimSpace(string(data[name]))
			if err := checkUser(name, sum); err != nil {
				return nil, fmt.Errorf("user %q: %w", short(name), err)
			}
			users = append(users, User{name, sum})
		}
	}
	switch slices.SortFunc(users, func(x, y User) int { return strings.Compare(x.Name, y.Name) }); {
	case len(users) == 0:
		return nil, errors.New("it has no user: its key auth is a file as htpasswd writes it")
	case len(users) > maxUsers:
		return nil, fmt.Errorf("it has more than the %d users that are taken", maxUsers)
	}
	for i := 1; i < len(users); i++ {
		if users[i].Name == users[i-1].Name {
			return nil, fmt.Errorf("user %q is there twice", short(users[i].Name))
		}
	}
	return users, nil
}

// userName matches the part before the colon.
var userName = regexp.MustCompile(`^[A-Za-z0-9._@+-]{1,100}$`)

func checkUser(name, sum string) error {
	const advice = "write one by htpasswd -nB -C 8 or by openssl passwd -6"
	parts := hash.FindStringSubmatch(sum)
	switch {
	case !userName.MatchString(name):
		return errors.New(`the name of the user is missing, or has other signs than letters, digits, ".", "_", "@", "+" and "-"`)
	case strings.HasPrefix(sum, "$apr1$"):
		return errors.New("a hash of Apache's own MD5 ($apr1$), which HAProxy does not know: " + advice)
	case strings.HasPrefix(sum, "{SHA}"):
		return errors.New("a hash of SHA-1, which HAProxy does not know: " + advice)
	case strings.HasPrefix(sum, "$y$") && !yescrypt.MatchString(sum):
		return errors.New("a hash of yescrypt that takes HAProxy long for each request: $y$j9T$ and lighter ones are taken")
	case parts == nil:
		return errors.New("no hash of a kind that HAProxy knows ($1$, $5$, $6$, $y$, $2y$): " + advice)
	}
	rounds, _ := strconv.Atoi(parts[1])
	cost, _ := strconv.Atoi(parts[2])
	if rounds > maxRounds || cost > maxCost {
		return fmt.Errorf("a hash that takes HAProxy long for each request: at most %d rounds, or a cost of %d, are taken", maxRounds, maxCost)
	}
	return nil
}
