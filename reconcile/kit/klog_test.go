package kit

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

// TestClientGoLogsWithUs: where the process is ours, what client-go logs for the whole
// process has the format and the level of our log.
func TestClientGoLogsWithUs(t *testing.T) {
	defer klog.ClearLogger()
	var ours, others bytes.Buffer
	NewLog(&others)
	log := NewLog(processStderr{&ours})
	require.NoError(t, log.SetFormat("json"))
	klog.Warning("the watch ended")
	klog.ErrorS(errors.New("refused"), "Failed to watch", "type", "*v1.Ingress")
	require.Contains(t, ours.String(), `"msg":"the watch ended"`)
	require.Contains(t, ours.String(), `"level":"ERROR","msg":"Failed to watch","err":"refused","type":"*v1.Ingress"`)
	require.NoError(t, log.SetLevel("error"))
	ours.Reset()
	klog.Info("not told")
	require.Empty(t, ours.String()+others.String())
}
