package place

import (
	"slices"
	"strings"
)

// converters are the names of all of HAProxy 2.6 and 3.2 (haproxy -dKcnv). Behind
// a sample expression HAProxy takes a word that begins with one for the next
// converter, as if a comma stood between them, and so it would take a pattern.
var converters = wordSet(`
add add_item aes_gcm_dec aes_gcm_enc and b64dec base2 base64 be2dec be2hex bool bytes capture-req capture-res concat cpl crc32 crc32c cut_crlf date
debug digest div djb2 even field fix_is_valid fix_tag_value has_ctl hex hex2i hmac host_only htonl http_date iif in_table ipmask json json_query
jwt_header_query jwt_payload_query jwt_verify language le2dec length lower ltime ltrim map map_beg map_beg_int map_beg_ip map_beg_key map_dir
map_dir_int map_dir_ip map_dir_key map_dom map_dom_int map_dom_ip map_dom_key map_end map_end_int map_end_ip map_end_key map_int map_int_int
map_int_ip map_int_key map_ip map_ip_int map_ip_ip map_ip_key map_reg map_reg_int map_reg_ip map_reg_key map_regm map_str map_str_int map_str_ip
map_str_key map_sub map_sub_int map_sub_ip map_sub_key mod mqtt_field_value mqtt_is_valid ms_ltime ms_utime mul nbsrv neg not odd or param port_only
protobuf regsub rfc7239_field rfc7239_is_valid rfc7239_n2nn rfc7239_n2np rfc7239_nn rfc7239_np rtrim sdbm secure_memcmp set-var sha1 sha2 srv_is_up
srv_queue strcmp sub table_bytes_in_rate table_bytes_out_rate table_clr_gpc table_clr_gpc0 table_clr_gpc1 table_conn_cnt table_conn_cur
table_conn_rate table_expire table_glitch_cnt table_glitch_rate table_gpc table_gpc0 table_gpc0_rate table_gpc1 table_gpc1_rate table_gpc_rate
table_gpt table_gpt0 table_http_err_cnt table_http_err_rate table_http_fail_cnt table_http_fail_rate table_http_req_cnt table_http_req_rate table_idle
table_inc_gpc table_inc_gpc0 table_inc_gpc1 table_kbytes_in table_kbytes_out table_server_id table_sess_cnt table_sess_rate table_trackers ub64dec
ub64enc ungrpc unset-var upper url_dec url_enc us_ltime us_utime utime when word wt6 x509_v_err_str xor xxh3 xxh32 xxh64
`)

// aclKeywords are the fetches that are keywords of ACLs, too (haproxy -dKacl):
// behind one of them the next word is not taken for a converter.
var aclKeywords = wordSet(`
Configuration base base_beg base_dir base_dom base_end base_len base_reg base_sub cook cook_beg cook_dir cook_dom cook_end cook_len cook_reg cook_sub
hdr hdr_beg hdr_dir hdr_dom hdr_end hdr_len hdr_reg hdr_sub http_auth_group method path path_beg path_dir path_dom path_end path_len path_reg path_sub
payload payload_lv req.ssl_ver req_rdp_cookie req_rdp_cookie_cnt req_ssl_sni req_ssl_ver req_ver resp_ver scook scook_beg scook_dir scook_dom
scook_end scook_len scook_reg scook_sub shdr shdr_beg shdr_dir shdr_dom shdr_end shdr_len shdr_reg shdr_sub ssl_fc_sni_end ssl_fc_sni_reg url url_beg
url_dir url_dom url_end url_len url_reg url_sub urlp urlp_beg urlp_dir urlp_dom urlp_end urlp_len urlp_reg urlp_sub
`)

// stringFetches are fetches and converters of which it is known that patterns are
// not numbers; so are those whose names end in the way that these match.
var stringFetches = wordSet(`
base body_param cook field fhdr hdr host_only http_auth_group lower map method path pathq payload query req.body req.body_param req.cook req.fhdr
req.hdr req.payload req.ssl_sni req_ssl_sni res.cook res.fhdr res.hdr scook shdr src dst ssl_fc_alpn ssl_fc_sni ssl_c_s_dn ssl_c_i_dn str upper
uri url url_dec url_param urlp word
`)

var stringEnds = []string{"_beg", "_dir", "_dom", "_end", "_ip", "_reg", "_str", "_sub"} // constant in effect

func givesString(fetch string) bool {
	return stringFetches[fetch] || slices.ContainsFunc(stringEnds, func(end string) bool { return strings.HasSuffix(fetch, end) })
}

// isConverter reports whether HAProxy would take a word for a converter.
func isConverter(s string) bool {
	end := 0
	for end < len(s) && nameSet.has(s[end]) {
		end++
	}
	return converters[s[:end]]
}
