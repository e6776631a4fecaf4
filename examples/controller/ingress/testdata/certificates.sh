#!/bin/sh
# Writes certificates.txt: one certificate with its key of each kind, under a line
# "== name". Needs OpenSSL 3. Run it in this folder to make the file anew.
set -e
here=$PWD
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
subject="-subj /CN=x.test -days 30000"
days="-days 30000"
out() { # name, certificates, key
	echo "== $1" >> "$dir/all"
	cat $2 $3 >> "$dir/all"
}
self() { # name, arguments that make the key
	n=$1
	shift
	openssl req -x509 -nodes -keyout k -out c $subject -addext subjectAltName=DNS:x.test "$@" 2> /dev/null
	out "$n" c k
}
by() { # name, CA, arguments: a leaf that the CA signs
	n=$1
	ca=$2
	shift 2
	openssl x509 -req -in leaf.csr -CA $ca.crt -CAkey $ca.key $days -out c "$@" 2> /dev/null
	out "$n" c leaf.key
}
extended() { # name, line of an extension file, CA
	printf "$2\n" > ext
	by "$1" "${3:-ca}" -extfile ext
}
rsa() { openssl req -x509 -nodes -newkey rsa:$2 -keyout $1.key -out $1.crt $subject -subj /CN=$1 $3 2> /dev/null; }

openssl req -new -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -keyout leaf.key -out leaf.csr -subj /CN=x.test 2> /dev/null
rsa ca 2048
rsa weakca 1024
rsa sha1ca 2048 -sha1
openssl req -new -key sha1ca.key -subj /CN=middle -out middle.csr
openssl x509 -req -in middle.csr -CA ca.crt -CAkey ca.key $days -sha1 -out middle.crt 2> /dev/null
cp sha1ca.key middle.key
for bits in 1024 2048; do
	openssl dsaparam -out p $bits 2> /dev/null
	openssl gendsa -out dsa$bits.key p 2> /dev/null
	openssl req -x509 -new -key dsa$bits.key -out dsa$bits.crt $subject -sha256
done

for bits in 1024 2047 2048 4096 4104; do self rsa-$bits -newkey rsa:$bits; done
for curve in prime192v1 secp224r1 prime256v1 secp384r1 secp521r1 secp256k1 brainpoolP256r1; do
	self ec-$curve -newkey ec -pkeyopt ec_paramgen_curve:$curve
done
self ec-explicit -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -pkeyopt ec_param_enc:explicit
self ed25519 -newkey ed25519
self ed448 -newkey ed448
self rsa-pss-key -newkey rsa-pss -pkeyopt rsa_keygen_bits:2048
for md in md5 sha1 sha224 sha256 sha384 sha512 sha512-256 sha3-256; do
	by signed-$md ca -$md
	openssl req -x509 -key leaf.key -out c $subject -$md 2> /dev/null && out self-$md c leaf.key
done
for md in sha1 sha224 sha256 sha384 sha512; do by signed-pss-$md ca -$md -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest; done
by signed-pss-long-salt ca -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:max
by signed-pss-mgf1-sha1 ca -sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest -sigopt rsa_mgf1_md:sha1
openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c $subject -sha1 -sigopt rsa_padding_mode:pss 2> /dev/null
out self-pss-sha1 c k
by signed-dsa dsa2048
for n in "foreign DER:30:06:80:04:01:02:03:04" "issuer issuer:always" "no none"; do
	printf "subjectKeyIdentifier=hash\nauthorityKeyIdentifier=${n#* }\n" > ext
	for md in sha1 sha256; do
		openssl x509 -req -in leaf.csr -signkey leaf.key $days -$md -extfile ext -out c 2> /dev/null
		out self-$md-${n%% *}-authority c leaf.key
	done
done
extended foreign-authority authorityKeyIdentifier=DER:30:06:80:04:01:02:03:04

by c ca; sed -i '/^== c$/,$d' all
openssl x509 -req -in leaf.csr -CA ca.crt -CAkey ca.key $days -out leaf.crt 2> /dev/null
for n in "chain ca" "chain-weak-key weakca" "chain-self-sha1 sha1ca" "chain-sha1 middle" "chain-dsa-1024 dsa1024" "chain-dsa-2048 dsa2048" "chain-twice leaf"; do
	cat leaf.crt ${n#* }.crt > c
	out ${n% *} c leaf.key
done
openssl ecparam -genkey -name prime192v1 -noout -out k 2> /dev/null
openssl req -x509 -key k $subject -out weak.crt 2> /dev/null
cat leaf.crt weak.crt > c
out chain-weak-curve c leaf.key
cat ca.crt leaf.crt > c
out chain-reversed c leaf.key
out mismatch leaf.crt ca.key
openssl x509 -req -in leaf.csr -signkey leaf.key -days -1 -out c 2> /dev/null
out expired c leaf.key
for serial in -5 0 0x1234567890123456789012345678901234567890123456789012345678901234; do
	by serial$serial ca -set_serial $serial
done
extended usage "keyUsage=critical,keyCertSign\nextendedKeyUsage=clientAuth\nbasicConstraints=critical,CA:TRUE"
extended unknown-critical 1.2.3.4=critical,DER:01:02
for e in subjectAltName basicConstraints keyUsage nameConstraints; do extended broken-$e $e=DER:01:02; done

openssl pkey -in leaf.key -traditional -out k
out key-sec1 leaf.crt k
(openssl ecparam -name prime256v1; cat k) > p
out key-parameters leaf.crt p
openssl pkey -in leaf.key -aes128 -passout pass:x -out k
out key-encrypted leaf.crt k
openssl pkey -in ca.key -traditional -out k
out key-pkcs1 ca.crt k
sed 's/EC PRIVATE/ODD PRIVATE/; s/BEGIN PRIVATE/BEGIN ODD PRIVATE/; s/END PRIVATE/END ODD PRIVATE/' leaf.key > k
out key-odd leaf.crt k
mv all "$here/certificates.txt"
