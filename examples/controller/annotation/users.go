package annotation

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// User is a user with the hash of a password.
type User struct{ Name, Hash string }

// String hides the hash.
func (u User) String() string { return u.Name }

// GoString hides the hash.
func (u User) GoString() string { return u.Name }

// maxUsers bounds the users of a Secret: HAProxy goes through them for each request.
const maxUsers = 1000

// Cost is how many microseconds HAProxy needs for the user when it reads its configuration. It
// then checks an empty password.
func (u User) Cost() int {
	kind, rounds, cost := kindOf(u.Hash)
	switch {
	case kind == nil:
		return 0
	case kind.perRound > 0:
		return kind.login(rounds, cost) / 3
	}
	return kind.login(rounds, cost)
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
			users = append(users, User{name, sum})
			if len(users) > maxUsers {
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
	const advice = "write one by htpasswd -nB or by openssl passwd -6"
	kind, rounds, cost := kindOf(sum)
	switch {
	case !userName.MatchString(name):
		return errors.New(`the name of the user is missing, or has other signs than letters, digits, ".", "_", "@", "+" and "-"`)
	case strings.HasPrefix(sum, "$apr1$"):
		return errors.New("a hash of Apache's own MD5 ($apr1$), which HAProxy does not know: " + advice)
	case strings.HasPrefix(sum, "{SHA}"):
		return errors.New("a hash of SHA-1, which HAProxy does not know: " + advice)
	case kind == nil && strings.HasPrefix(sum, "$y$"):
		return fmt.Errorf("a hash of yescrypt that takes HAProxy more than %d ms for each request: %s", maxHash/1000, advice)
	case kind == nil:
		return errors.New("no hash of a kind that HAProxy knows ($1$, $5$, $6$, $y$, $2y$): " + advice)
	case kind.login(rounds, cost) > maxHash:
		return fmt.Errorf(
			"a hash of %s that takes HAProxy %d ms for each request, more than the %d that are taken: %s",
			kind.name,
			kind.login(rounds, cost)/1000,
			maxHash/1000,
			advice,
		)
	}
	return nil
}
