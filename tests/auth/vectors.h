/* Published test vectors: RFC 8463 appendix A, RFC 6376 appendix A.2 with the
 * key of appendix C (in the layout that verifies: six blanks of indentation),
 * and an ARC chain made with the RSA key of RFC 8463. */
#ifndef TESTS_AUTH_VECTORS_H
#define TESTS_AUTH_VECTORS_H

#define RFC8463_RSA_P \
	"MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6" \
	"NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi0Qvx/byYzCNb3W91" \
	"y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvH" \
	"O9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB"
#define RFC8463_ED25519_P "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
#define RFC6376_P \
	"MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDwIRP/UC3SBsEmGqZ9" \
	"ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFCjxOCKG9v3b4jYfcTNh5ijSsq" \
	"631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gbto/NMqJ0fzfVjH4O" \
	"uKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB"

#define RFC8463_ZONE \
	"brisbane._domainkey.football.example.com TXT " \
	"\"v=DKIM1; k=ed25519; p=" RFC8463_ED25519_P "\"\n" \
	"test._domainkey.football.example.com TXT " \
	"\"v=DKIM1; k=rsa; p=" RFC8463_RSA_P "\"\n"
#define RFC6376_ZONE \
	"brisbane._domainkey.example.com TXT " \
	"\"v=DKIM1; p=" RFC6376_P "\"\n"

/* The time in t= of both signatures. */
#define RFC8463_TIME 1528637909

static const char rfc8463_ed25519_signature[] =
    "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n"
    " d=football.example.com; i=@football.example.com;\r\n"
    " q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n"
    " subject : date : message-id : from : subject : date;\r\n"
    " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n"
    " b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bu"
    "s\r\n"
    " Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==\r\n";

static const char rfc8463_rsa_signature[] =
    "DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n"
    " d=football.example.com; i=@football.example.com;\r\n"
    " q=dns/txt; s=test; t=1528637909; h=from : to : subject :\r\n"
    " date : message-id : from : subject : date;\r\n"
    " bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n"
    " b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe"
    "3\r\n"
    " DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2J"
    "z\r\n"
    " dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8"
    "=\r\n";

static const char rfc8463_header[] =
    "From: Joe SixPack <joe@football.example.com>\r\n"
    "To: Suzie Q <suzie@shopping.example.net>\r\n"
    "Subject: Is dinner ready?\r\n"
    "Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
    "Message-ID: <20030712040037.46341.5F8J@football.example.co"
    "m>\r\n";

static const char rfc8463_body[] =
    "Hi.\r\n"
    "\r\n"
    "We lost the game.  Are you hungry yet?\r\n"
    "\r\n"
    "Joe.\r\n";

static const char rfc6376_signature[] =
    "DKIM-Signature: v=1; a=rsa-sha256; s=brisbane; d=example.c"
    "om;\r\n"
    "      c=simple/simple; q=dns/txt; i=joe@football.example.c"
    "om;\r\n"
    "      h=Received : From : To : Subject : Date : Message-ID"
    ";\r\n"
    "      bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n"
    "      b=AuUoFEfDxTDkHlLXSZEpZj79LICEps6eda7W3deTVFOk4yAUoq"
    "OB\r\n"
    "        4nujc7YopdG5dWLSdNg6xNAZpOPr+kHxt1IrE+NahM6L/LbvaH"
    "ut\r\n"
    "        KVdkLLkpVaVVQPzeRDI009SO2Il5Lu7rDNH6mZckBdrIx0orEt"
    "ZV\r\n"
    "        4bmp/YzhwvcubU4=;\r\n";

static const char rfc6376_header[] =
    "Received: from client1.football.example.com  [192.0.2.1]\r\n"
    "      by submitserver.example.com with SUBMISSION;\r\n"
    "      Fri, 11 Jul 2003 21:01:54 -0700 (PDT)\r\n"
    "From: Joe SixPack <joe@football.example.com>\r\n"
    "To: Suzie Q <suzie@shopping.example.net>\r\n"
    "Subject: Is dinner ready?\r\n"
    "Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n"
    "Message-ID: <20030712040037.46341.5F8J@football.example.co"
    "m>\r\n";

static const char rfc6376_body[] =
    "Hi.\r\n"
    "\r\n"
    "We lost the game. Are you hungry yet?\r\n"
    "\r\n"
    "Joe.\r\n";

/* Top to bottom: AS2 AMS2 AAR2 AS1 AMS1 AAR1, above rfc8463_header. */
static const char arc_set2[] =
    "ARC-Seal: i=2; a=rsa-sha256; cv=pass; d=football.example.c"
    "om; s=test; t=1528637909; b=3c3M7cCHrHBYwHTiAMm6MiCARXHbh/"
    "+F1X7EtFfap6aelOMUrSuK3nTFoxZDn72ALKZPu/pq4JFGGAa4tYtmcU4Q"
    "5RbVS4NK8Ezbi7/cDkkIWXw5FW2bfuMrz2otGscMgTRKNuiCXS1r/6SBei"
    "XdlT3ybRuilq4uj0NEuIcLdu0=\r\n"
    "ARC-Message-Signature: i=2; a=rsa-sha256; c=relaxed/relaxe"
    "d; d=football.example.com; s=test; t=1528637909; h=from:to"
    ":subject:date:message-id; bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO"
    "6Sn7XIkfJVOzv8=; b=1QmSc1RNp0EQxKJdZW4FujKYSeCT8LHNGud+Eiy"
    "iOSE84x/4PHWFAwJ5WKCnO4KWHHjZvj64Zmx5j4gD8RRL7fscaW6qYI7YH"
    "NLgo+Oga6hESkEg8W/YWBnjOW/eLCMVYcleuK5cLVqFY3zls6LQaDxEw5i"
    "89w38iiSpdLXM2uE=\r\n"
    "ARC-Authentication-Results: i=2; mx2.example.org; arc=pass"
    " header.oldest-pass=0\r\n";

static const char arc_set1[] =
    "ARC-Seal: i=1; a=rsa-sha256; cv=none; d=football.example.c"
    "om; s=test; t=1528637909; b=hYizAmXoxHVC1sNde6Bax2+bVBs44j"
    "vd1CDc4VxgNWvul17t5HJoLhUK9Y45jnC/pORuSgkuJhCyzV277fpj0d5E"
    "FAWIJPz+sfjUkRlGpgUJsZvJbuyLg8BKBm3qGtKSUUKkNkUSOnKE0Z9FtT"
    "ie5wstEfM+GHh1x5lW8Iy/5MU=\r\n"
    "ARC-Message-Signature: i=1; a=rsa-sha256; c=relaxed/relaxe"
    "d; d=football.example.com; s=test; t=1528637909; h=from:to"
    ":subject:date:message-id; bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO"
    "6Sn7XIkfJVOzv8=; b=sLbr9dzgxr74dCrHvRsP2Hra9Jr20TVHholQ6gC"
    "/pgsRoGFp9zhQj6kZPeacMS0nbRl9CL2RlWIg4Gr1FVy0gKMkPmGNznEMs"
    "daNVhxOaa6qjCLSFqASONjLNVLZIjJKfkWnI9paxbcc+6Ien/enY1wzPjP"
    "DJSXisT9vMGTzMVU=\r\n"
    "ARC-Authentication-Results: i=1; mx1.example.org; spf=pass"
    " smtp.mailfrom=football.example.com\r\n";

static const char rfc8463_rsa_pem[] =
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "MIICXQIBAAKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQi\n"
    "Y/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqM\n"
    "KrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB\n"
    "AoGAH0cxOhFZDgzXWhDhnAJDw5s4roOXN4OhjiXa8W7Y3rhX3FJqmJSPuC8N9vQm\n"
    "6SVbaLAE4SG5mLMueHlh4KXffEpuLEiNp9Ss3O4YfLiQpbRqE7Tm5SxKjvvQoZZe\n"
    "zHorimOaChRL2it47iuWxzxSiRMv4c+j70GiWdxXnxe4UoECQQDzJB/0U58W7RZy\n"
    "6enGVj2kWF732CoWFZWzi1FicudrBFoy63QwcowpoCazKtvZGMNlPWnC7x/6o8Gc\n"
    "uSe0ga2xAkEA8C7PipPm1/1fTRQvj1o/dDmZp243044ZNyxjg+/OPN0oWCbXIGxy\n"
    "WvmZbXriOWoSALJTjExEgraHEgnXssuk7QJBALl5ICsYMu6hMxO73gnfNayNgPxd\n"
    "WFV6Z7ULnKyV7HSVYF0hgYOHjeYe9gaMtiJYoo0zGN+L3AAtNP9huqkWlzECQE1a\n"
    "licIeVlo1e+qJ6Mgqr0Q7Aa7falZ448ccbSFYEPD6oFxiOl9Y9se9iYHZKKfIcst\n"
    "o7DUw1/hz2Ck4N5JrgUCQQCyKveNvjzkkd8HjYs0SwM0fPjK16//5qDZ2UiDGnOe\n"
    "uEzxBDAr518Z8VFbR41in3W4Y3yCDgQlLlcETrS+zYcL\n"
    "-----END RSA PRIVATE KEY-----\n";

static const char rfc6376_pem[] =
    "-----BEGIN RSA PRIVATE KEY-----\n"
    "MIICXwIBAAKBgQDwIRP/UC3SBsEmGqZ9ZJW3/DkMoGeLnQg1fWn7/zYtIxN2SnFC\n"
    "jxOCKG9v3b4jYfcTNh5ijSsq631uBItLa7od+v/RtdC2UzJ1lWT947qR+Rcac2gb\n"
    "to/NMqJ0fzfVjH4OuKhitdY9tf6mcwGjaNBcWToIMmPSPDdQPNUYckcQ2QIDAQAB\n"
    "AoGBALmn+XwWk7akvkUlqb+dOxyLB9i5VBVfje89Teolwc9YJT36BGN/l4e0l6QX\n"
    "/1//6DWUTB3KI6wFcm7TWJcxbS0tcKZX7FsJvUz1SbQnkS54DJck1EZO/BLa5ckJ\n"
    "gAYIaqlA9C0ZwM6i58lLlPadX/rtHb7pWzeNcZHjKrjM461ZAkEA+itss2nRlmyO\n"
    "n1/5yDyCluST4dQfO8kAB3toSEVc7DeFeDhnC1mZdjASZNvdHS4gbLIA1hUGEF9m\n"
    "3hKsGUMMPwJBAPW5v/U+AWTADFCS22t72NUurgzeAbzb1HWMqO4y4+9Hpjk5wvL/\n"
    "eVYizyuce3/fGke7aRYw/ADKygMJdW8H/OcCQQDz5OQb4j2QDpPZc0Nc4QlbvMsj\n"
    "7p7otWRO5xRa6SzXqqV3+F0VpqvDmshEBkoCydaYwc2o6WQ5EBmExeV8124XAkEA\n"
    "qZzGsIxVP+sEVRWZmW6KNFSdVUpk3qzK0Tz/WjQMe5z0UunY9Ax9/4PVhp/j61bf\n"
    "eAYXunajbBSOLlx4D+TunwJBANkPI5S9iylsbLs6NkaMHV6k5ioHBBmgCak95JGX\n"
    "GMot/L2x0IYyMLAz6oLWh2hm7zwtb0CgOrPo1ke44hFYnfc=\n"
    "-----END RSA PRIVATE KEY-----\n";

#endif
