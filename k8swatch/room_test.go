package k8swatch_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/hapticsdk/haptic/k8swatch"
	"github.com/hapticsdk/haptic/k8swatch/k8swatchtest"
)

// TestBytesPerNamespace: what is beyond the bound of a namespace is refused, and what is held
// stays, also when everything is listed again.
func TestBytesPerNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := big("z", 500_000)
		other.Namespace = "blog"
		src := k8swatchtest.NewSource(big("b", 300_000), big("c", 300_000), other)
		w := mustNew(t, src, secrets, &k8swatch.Options{BytesPerNamespace: 700_000, Logger: quiet})
		start(t, w, 3)
		held := func() (all string) {
			for _, s := range k8swatch.Read[*corev1.Secret](w.Snapshot()).List() {
				all += s.Name + "=" + password(s) + " "
			}
			return all
		}
		check := func(want string, refused int, why string) {
			t.Helper()
			synctest.Wait()
			require.Equal(t, want, held(), why)
			require.Equal(t, refused, w.State().Refused, why)
			require.NoError(t, w.Refresh(t.Context()))
			require.Equal(t, want, held(), "%s, listed again", why)
			require.Equal(t, refused, w.State().Refused, "%s, listed again", why)
		}
		check("z=z b=b c=c ", 0, "all fit")
		src.Apply(big("a", 300_000))
		check("z=z b=b c=c ", 1, "one more")
		grown := big("b", 500_000)
		grown.Data["password"] = []byte("grown")
		src.Apply(grown)
		check("z=z b=b c=c ", 2, "one that grows")
		src.Delete(big("c", 0))
		synctest.Wait()
		require.Equal(t, "z=z b=b ", held(), "there is room, and nothing is read again yet")
		require.NoError(t, w.Refresh(t.Context()))
		check("z=z b=grown ", 1, "a list finds room for what is held first")
		src.Delete(grown)
		synctest.Wait()
		src.Apply(big("a", 300_001))
		check("z=z a=a ", 0, "it changes again, and has room")
		src.Delete(big("a", 0))
		src.Apply(big("c", 650_000))
		check("z=z c=c ", 0, "what is gone has no room")
	})
}
