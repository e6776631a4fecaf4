package dataplanetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	parser "github.com/haproxytech/client-native/v6/config-parser"
	parseroptions "github.com/haproxytech/client-native/v6/config-parser/options"
	"github.com/haproxytech/client-native/v6/config-parser/types"
	"github.com/haproxytech/client-native/v6/configuration"
	"github.com/haproxytech/client-native/v6/configuration/options"
	"github.com/haproxytech/client-native/v6/models"

	"github.com/hapticsdk/haptic/internal/dpapi"
	"github.com/hapticsdk/haptic/internal/haproxycfg"
)

// engine is the configuration engine of client-native, which a Dataplane API
// consists of, over a file of its own.
type engine struct {
	cfg  configuration.Configuration
	file string // haproxy.cfg
	dir  string // of transactions

	binary string // haproxy, "" if there is none

	// defaults is the package variable of the config parser, which all engines
	// of a process share, as this one left it.
	defaults string

	// check says why a text is refused, "" if it is not. Nil leaves that to a
	// haproxy.
	check func(text string) string
}

// noBinary stands in for a haproxy where there is none: the engine starts its
// binary once, to ask for a version, and takes any answer.
const noBinary = "echo"

// openEngine opens the engine over a file that is there already. Without a
// binary, check validates, and nil accepts every text.
func openEngine(file, binary string, check func(string) string) (*engine, error) {
	e := &engine{file: file, dir: filepath.Join(filepath.Dir(file), "tx"), binary: binary, check: check}
	return e, e.do(func(configuration.Configuration) error { return e.open() })
}

func (e *engine) open() (err error) {
	opts := []options.ConfigurationOption{
		options.ConfigurationFile(e.file), options.TransactionsDir(e.dir),
		options.UsePersistentTransactions, options.UseMd5Hash, options.MasterWorker,
	}
	if e.binary == "" {
		opts = append(opts, options.HAProxyBin(noBinary), options.SkipConfigurationFileValidation)
	} else {
		opts = append(opts, options.HAProxyBin(e.binary))
	}
	if e.cfg, err = configuration.New(context.Background(), opts...); err != nil {
		return err
	}
	if e.binary == "" {
		if err := believeBinary(e.cfg.Parser(), e.file); err != nil {
			return err
		}
	}
	return addDisclaimer(e.cfg.Parser())
}

// edit is a change of the file that did not go through the engine, which is
// opened anew then.
func (e *engine) edit(text string) error {
	if err := os.WriteFile(e.file, []byte(text), 0o644); err != nil {
		return err
	}
	return e.do(func(configuration.Configuration) error {
		if err := e.open(); err != nil {
			return err
		}
		return e.cfg.IncrementVersion()
	})
}

// believeBinary makes the engine's first parser what it would be with a binary
// of today: the engine takes one whose version it cannot read for so old that
// it does not know sections that inherit from a named defaults section.
func believeBinary(p parser.Parser, file string) error {
	reflect.ValueOf(p).Elem().FieldByName("Options").FieldByName("NoNamedDefaultsFrom").SetBool(false)
	return p.LoadData(file)
}

// addDisclaimer puts the words of the API above the configuration, where the
// first transaction finds them.
func addDisclaimer(p parser.Parser) error {
	for i, text := range []string{"Dataplaneapi managed File", "changing file directly can cause a conflict if dataplaneapi is running"} {
		if err := p.Insert(parser.Comments, parser.CommentsSectionName, "#", types.Comments{Value: text}, i); err != nil {
			return err
		}
	}
	return nil
}

// errPanic says that the engine panicked, which it does on some input.
var errPanic = errors.New("panic")

// do runs f with the engine, alone in this process.
func (e *engine) do(f func(configuration.Configuration) error) (err error) {
	haproxycfg.WithParser(func() {
		others := parser.DefaultSectionName
		parser.DefaultSectionName = e.defaults
		defer func() {
			e.defaults, parser.DefaultSectionName = parser.DefaultSectionName, others
			if p := recover(); p != nil {
				err = fmt.Errorf("%w: %v", errPanic, p)
			}
		}()
		err = f(e.cfg)
	})
	return err
}

// version returns the version of the configuration in memory, or that of a
// transaction, 0 if there is none.
func (e *engine) version(transaction string) (version int64) {
	_ = e.do(func(cfg configuration.Configuration) (err error) {
		if transaction != "" {
			if t, err := cfg.GetTransaction(transaction); err != nil || t.Status != models.TransactionStatusInProgress {
				return err
			}
		}
		version, err = cfg.GetConfigurationVersion(transaction)
		return err
	})
	return version
}

// disk returns the text as stored, with the lines of the API.
func (e *engine) disk() (string, error) {
	text, err := os.ReadFile(e.file)
	return string(text), err
}

// memory returns what the engine believes is stored.
func (e *engine) memory() (text string) {
	_ = e.do(func(cfg configuration.Configuration) error {
		text = cfg.Parser().String()
		return nil
	})
	return text
}

// push replaces the whole configuration. A text that is checked is the
// normalised one, as haproxy sees it.
func (e *engine) push(text string, version int64, skipVersion bool) error {
	return e.do(func(cfg configuration.Configuration) error {
		current, err := cfg.GetVersion("")
		if err == nil && e.check != nil && (skipVersion || current == version) {
			err = e.checkPush(text)
		}
		if err != nil {
			return err
		}
		return cfg.PostRawConfiguration(&text, version, skipVersion)
	})
}

func (e *engine) checkPush(text string) error {
	p, err := parser.New(parseroptions.String(text), parseroptions.NoNamedDefaultsFrom)
	if err != nil {
		return err
	}
	stored := p.String()
	why := e.checkText(stored)
	if why == "" {
		return nil
	}
	id := newID()
	if err := os.MkdirAll(filepath.Join(e.dir, models.TransactionStatusFailed), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(e.fileOf(id, models.TransactionStatusFailed), []byte(stored), 0o644); err != nil {
		return err
	}
	return refused(id, why)
}

func (e *engine) checkText(text string) string {
	plain, _ := dpapi.SplitText(text)
	return e.check(plain)
}

// newID makes an identifier in the form of the engine's.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// overwrite is a push by somebody else that no check of ours sees.
func (e *engine) overwrite(text string) error {
	return e.do(func(cfg configuration.Configuration) error {
		version, err := cfg.GetVersion("")
		if err != nil {
			return err
		}
		return cfg.PostRawConfiguration(&text, version, false)
	})
}

// refused is the error that the engine has for a text that haproxy refuses.
func refused(transaction, why string) error {
	if transaction != "" {
		why = "err transactionId=" + transaction + " \n" + why
	}
	return configuration.NewConfError(configuration.ErrValidationError, "exit status 1: "+why)
}

// fileOf is where the engine keeps a transaction of that status.
func (e *engine) fileOf(transaction, status string) string {
	return filepath.Join(e.dir, status, filepath.Base(e.file)+"."+transaction)
}

// validate checks a text without storing it.
func (e *engine) validate(text string) error {
	if e.check != nil {
		if why := e.checkText(text); why != "" {
			return refused("", why)
		}
		return nil
	}
	return e.do(func(cfg configuration.Configuration) error {
		return cfg.PostRawConfiguration(&text, 0, false, true)
	})
}

// commit makes a transaction the configuration and outdates the others.
func (e *engine) commit(id string) (t *models.Transaction, err error) {
	err = e.do(func(cfg configuration.Configuration) error {
		if e.check != nil {
			if err := e.checkCommit(cfg, id); err != nil {
				return err
			}
		}
		if t, err = cfg.CommitTransaction(id); err != nil {
			return err
		}
		open, err := cfg.GetTransactions(models.TransactionStatusInProgress)
		if err != nil {
			return err
		}
		for _, other := range *open {
			if other.Version <= t.Version {
				_ = cfg.MarkTransactionOutdated(other.ID)
			}
		}
		return nil
	})
	return t, err
}

// checked carries out an edit. Outside of a transaction the engine makes one of
// its own, which a check of ours can only see if we make it instead.
func (e *engine) checked(cfg configuration.Configuration, ed *edit, method string) error {
	if e.check == nil || ed.inside || ed.version == 0 {
		_, err := ed.call(cfg, method)
		return err
	}
	t, err := cfg.StartTransaction(ed.version)
	if err != nil {
		return err
	}
	own := *ed
	own.transaction, own.version = t.ID, 0
	if _, err := own.call(cfg, method); err != nil {
		_ = cfg.DeleteTransaction(t.ID)
		return err
	}
	if err := e.checkCommit(cfg, t.ID); err != nil {
		return err
	}
	_, err = cfg.CommitTransaction(t.ID)
	return err
}

// checkCommit fails a transaction as the engine does when haproxy refuses it.
func (e *engine) checkCommit(cfg configuration.Configuration, id string) error {
	current, err := cfg.GetVersion("")
	if err != nil {
		return err
	}
	own, err := cfg.GetVersion(id)
	if err != nil || own != current {
		return nil // the engine has its own words for it
	}
	p, err := cfg.GetParser(id)
	if err != nil {
		return err
	}
	why := e.checkText(p.String())
	if why == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(e.dir, models.TransactionStatusFailed), 0o755); err != nil {
		return err
	}
	if err := os.Rename(e.fileOf(id, ""), e.fileOf(id, models.TransactionStatusFailed)); err != nil {
		return err
	}
	if err := cfg.DeleteParser(id); err != nil {
		return err
	}
	return refused(id, why)
}
