package dataplanetest_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // the fingerprint that HAProxy shows
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// pemOf makes a self-signed certificate, with its key if it is to have one, and
// of a kind that the storage refuses on request.
func pemOf(name string, key, edwards bool) string {
	var signer any
	var public any
	if edwards {
		pub, priv, _ := ed25519.GenerateKey(rand.Reader)
		signer, public = priv, pub
	} else {
		priv, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		signer, public = priv, &priv.PublicKey
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Unix(1700000000, 0), NotAfter: time.Unix(4000000000, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, signer)
	if err != nil {
		panic(err)
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if key {
		der, err := x509.MarshalPKCS8PrivateKey(signer)
		if err != nil {
			panic(err)
		}
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	}
	return string(out)
}

func fingerprintOf(pemText string) string {
	block, _ := pem.Decode([]byte(pemText))
	sum := sha1.Sum(block.Bytes) //nolint:gosec // the fingerprint that HAProxy shows
	return fmt.Sprintf("%X", sum)
}

func storageScenarios() []scenario {
	const maps, general = "storage/maps", "storage/general"
	withMap := startText + "frontend m\n  bind unix@m.sock\n  http-request deny if { path,map({dir}/maps/m.map) -m found }\n"
	return []scenario{
		{name: "storage, maps", steps: []step{
			{do: "GET " + maps, status: 200, want: "[]"},
			{do: "POST " + maps, file: "m.map", body: "a b\n", status: 201, want: `"storage_name":"m.map"`},
			{do: "POST " + maps, file: "m.map", body: "a b\n", status: 409, want: "already exists"},
			{do: "POST " + maps, file: "site.example.com.txt", body: "a b\n", status: 201, want: `"storage_name":"site_example_com.txt.map"`},
			{do: "POST " + maps, file: "../up&down.map", body: "a b\n", status: 201, want: `"storage_name":"up_down.map"`},
			{do: "POST " + maps + "?skip_reload=true", file: "empty.map", status: 201, want: `"size":0`},
			{do: "GET " + maps, status: 200, want: `"storage_name":"m.map"`},
			{do: "GET " + maps + "/m.map", status: 200, want: "a b"},
			{do: "GET " + maps + "/absent.map", status: 404, want: "file absent.map doesn't exist in dir"},
			{do: "PUT " + maps + "/m.map", body: "a c\n", status: 202, reload: true},
			{do: "PUT " + maps + "/m.map?skip_reload=true", body: "a d\n", status: 204},
			{do: "PUT " + maps + "/m.map?force_reload=true", body: "a e\n", status: 204},
			{do: "GET " + maps + "/m.map", status: 200, want: "a e"},
			{do: "PUT " + maps + "/m.map", status: 422, want: "data in body is required"},
			{do: "PUT " + maps + "/absent.map", body: "a b\n", status: 404},
			{do: "POST configuration/raw?version={v}&skip_reload=true", body: withMap, status: 201},
			{do: "DELETE " + maps + "/m.map", status: 409, want: "rejecting attempt to delete file /etc/haproxy/maps/m.map"},
			{do: "POST configuration/raw?version={v}&skip_reload=true", body: startText, status: 201},
			{do: "DELETE " + maps + "/m.map?skip_reload=true", status: 204},
			{do: "DELETE " + maps + "/m.map", status: 404},
			{do: "PATCH " + maps, status: 405},
		}},
		{name: "storage, general", steps: []step{
			{do: "POST " + general, file: "sorry.http", body: "HTTP/1.0 503 Sorry\r\n\r\n", status: 201, want: `"storage_name":"sorry.http"`},
			{do: "POST " + general + "?skip_reload=true", file: "a.b.c", body: "x", status: 201, want: `"storage_name":"a_b.c"`},
			{do: "POST " + general, file: "no extension", body: "x", status: 201, want: `"storage_name":"no_extension"`},
			{do: "POST " + general, file: "empty", status: 201},
			{do: "POST " + general, file: "sorry.http", body: "x", status: 409},
			{do: "GET " + general, status: 200, want: `"storage_name":"a_b.c"`},
			{do: "GET " + general + "/sorry.http", status: 200, want: "503 Sorry"},
			{do: "PUT " + general + "/sorry.http", file: "sorry.http", body: "other", status: 202, reload: true},
			{do: "PUT " + general + "/sorry.http?skip_reload=true", file: "sorry.http", body: "more", status: 204},
			{do: "GET " + general + "/sorry.http", status: 200, want: "more"},
			{do: "PUT " + general + "/absent", file: "absent", body: "x", status: 404},
			{do: "DELETE " + general + "/sorry.http?skip_reload=true", status: 204},
			{do: "GET " + general + "/sorry.http", status: 404},
		}},
	}
}

func certificateScenarios() []scenario {
	const certs = "storage/ssl_certificates"
	one, two := pemOf("a.test", true, false), pemOf("b.test", true, false)
	return []scenario{
		{name: "storage, certificates", from: 27, steps: []step{
			{do: "GET " + certs, status: 200, want: "[]"},
			{do: "POST " + certs + "?skip_reload=true", file: "site.example.com.pem", body: one, status: 201, want: `"storage_name":"site_example_com.pem"`},
			{do: "POST " + certs + "?skip_reload=true", file: "a.pem", body: one, status: 201, want: `"serial":"7"`},
			{do: "POST " + certs, file: "a.pem", body: one, status: 409},
			{do: "POST " + certs, file: "key.pem", body: pemOf("c.test", false, false), status: 500},
			{do: "POST " + certs, file: "edwards.pem", body: pemOf("d.test", true, true), status: 500},
			{do: "POST " + certs, file: "text.pem", body: "text\n", status: 500},
			{do: "POST " + certs, file: "now.pem", body: one, status: 201},
			{do: "POST " + certs + "?force_reload=true", file: "forced.pem", body: one, status: 201},
			{do: "GET " + certs, status: 200, want: `"storage_name":"a.pem"`},
			{do: "GET " + certs + "/a.pem", status: 200, want: `"not_after":"2096-10-02T07:06:40.000Z"`},
			{do: "PUT " + certs + "/a.pem?skip_reload=true", body: two, status: 200},
			{do: "PUT " + certs + "/a.pem", body: two, status: 202, reload: true},
			{do: "PUT " + certs + "/a.pem", body: "text\n", status: 500},
			{do: "PUT " + certs + "/a.pem", status: 422, want: "data in body is required"},
			{do: "PUT " + certs + "/absent.pem", body: two, status: 404},
			{do: "DELETE " + certs + "/a.pem?skip_reload=true", status: 204},
			{do: "DELETE " + certs + "/now.pem", status: 202, reload: true},
			{do: "DELETE " + certs + "/now.pem", status: 404},
		}},
	}
}
