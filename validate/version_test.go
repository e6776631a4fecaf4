package validate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hapticsdk/haptic/validate"
)

// A verdict by another version than the target's says so, whatever it is.
func TestTargetVersion(t *testing.T) {
	t.Parallel()
	const body = "[ \"$1\" = -v ] && { echo 'HAProxy version 3.0.11-1+deb13u3 2026/05/20'; exit; }\n"
	yes := script(t, body+"exit 0\n")
	no := script(t, body+"echo '[ALERT]    (1) : config : parsing [haproxy.cfg:1] : wrong'\nexit 1\n")
	for target, other := range map[string]bool{
		"": false, "3": false, "3.0": false, "3.0.11": false, "3.0.11-1+deb13u3": false,
		"2.6": true, "3.0.1": true, "3.00": true, "3.2-dev": true, "3.0.11.1": true,
	} {
		v := &validate.Validator{Timeout: patience, Binary: yes, TargetVersion: func() string { return target }}
		for range 2 { // the second is remembered
			report, err := v.Semantics(t.Context(), text(t, good))
			if err != nil || report.OtherVersion != other || report.HAProxyVersion != "3.0.11" {
				t.Errorf("target %q: %+v %v", target, report, err)
			}
		}
		v = &validate.Validator{Timeout: patience, Binary: no, TargetVersion: func() string { return target }}
		_, err := v.Semantics(t.Context(), text(t, good))
		var invalid *validate.Error
		if !errors.As(err, &invalid) || invalid.OtherVersion != other || invalid.HAProxyVersion != "3.0.11" {
			t.Fatalf("target %q: %v", target, err)
		}
		if strings.Contains(err.Error(), "checked by HAProxy 3.0.11, but the instance runs another version") != other {
			t.Errorf("target %q: %v", target, err)
		}
	}
}

// A haproxy that crashes over what it refuses has refused it all the same, but
// that is not remembered: it may have crashed for another reason.
func TestCrashAfterAlert(t *testing.T) {
	t.Parallel()
	binary := script(t, "[ \"$1\" = -v ] && { echo 'HAProxy version 3.2.26'; exit; }\n"+
		"echo \"[ALERT]    (1) : userlist 'u': no such group 'g' specified in user 'a'\"\nkill -SEGV $$\n")
	v := &validate.Validator{Binary: binary, Timeout: patience}
	for range 2 {
		report, err := v.Semantics(t.Context(), text(t, good))
		var invalid *validate.Error
		if !errors.As(err, &invalid) || len(invalid.Findings) != 1 || !strings.Contains(invalid.Findings[0].Message, "no such group") {
			t.Fatalf("%+v %v", report, err)
		}
	}
}

// Verdicts belong to one Validator.
func TestRemembersForItself(t *testing.T) {
	t.Parallel()
	binary, checks := counting(t)
	for i := 1; i <= 2; i++ {
		report, err := (&validate.Validator{Binary: binary, Timeout: patience}).Check(t.Context(), text(t, good))
		if err != nil || report.Remembered || report.Inherited || checks() != i {
			t.Fatalf("%+v %v after %d checks", report, err, checks())
		}
	}
}

// An alert refuses a configuration also where haproxy ends with 0, as 3.4 does.
func TestAlertWithoutFailure(t *testing.T) {
	t.Parallel()
	binary := script(t, "[ \"$1\" = -v ] && { echo 'HAProxy version 3.4.0'; exit; }\n"+
		"echo '[WARNING]  (1) : config : something else'\necho \"[ALERT]    (1) : config : parsing [haproxy.cfg:1] : invalid character '/' in 'backend' section name\"\nexit 0\n")
	v := &validate.Validator{Binary: binary, Timeout: patience}
	for range 2 { // the second is remembered
		report, err := v.Semantics(t.Context(), text(t, good))
		var invalid *validate.Error
		if !errors.As(err, &invalid) || len(invalid.Findings) != 1 || !strings.Contains(invalid.Findings[0].Message, "invalid character") {
			t.Fatalf("%+v %v", report, err)
		}
	}
}
