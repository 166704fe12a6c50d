#include "mail/entity.h"

#include <stdlib.h>

/* Sorted by name as strcmp sorts. From the HTML standard's list: all of HTML
 * 4, and what stands for letters or ASCII signs. */
static const struct entity {
	const char *name;
	uint32_t cp;
} entities[] = {
	{ "AElig", 0xc6 }, { "AMP", 0x26 }, { "Aacute", 0xc1 },
	{ "Abreve", 0x102 }, { "Acirc", 0xc2 }, { "Acy", 0x410 },
	{ "Agrave", 0xc0 }, { "Alpha", 0x391 }, { "Amacr", 0x100 },
	{ "Aogon", 0x104 }, { "Aring", 0xc5 }, { "Atilde", 0xc3 },
	{ "Auml", 0xc4 }, { "Bcy", 0x411 }, { "Beta", 0x392 },
	{ "CHcy", 0x427 }, { "COPY", 0xa9 }, { "Cacute", 0x106 },
	{ "Ccaron", 0x10c }, { "Ccedil", 0xc7 }, { "Ccirc", 0x108 },
	{ "Cdot", 0x10a }, { "Chi", 0x3a7 }, { "DJcy", 0x402 },
	{ "DScy", 0x405 }, { "DZcy", 0x40f }, { "Dagger", 0x2021 },
	{ "Dcaron", 0x10e }, { "Dcy", 0x414 }, { "Delta", 0x394 },
	{ "Dstrok", 0x110 }, { "ENG", 0x14a }, { "ETH", 0xd0 },
	{ "Eacute", 0xc9 }, { "Ecaron", 0x11a }, { "Ecirc", 0xca },
	{ "Ecy", 0x42d }, { "Edot", 0x116 }, { "Egrave", 0xc8 },
	{ "Emacr", 0x112 }, { "Eogon", 0x118 }, { "Epsilon", 0x395 },
	{ "Eta", 0x397 }, { "Euml", 0xcb }, { "Fcy", 0x424 },
	{ "GJcy", 0x403 }, { "GT", 0x3e }, { "Gamma", 0x393 },
	{ "Gammad", 0x3dc }, { "Gbreve", 0x11e }, { "Gcedil", 0x122 },
	{ "Gcirc", 0x11c }, { "Gcy", 0x413 }, { "Gdot", 0x120 },
	{ "HARDcy", 0x42a }, { "Hacek", 0x2c7 }, { "Hat", 0x5e },
	{ "Hcirc", 0x124 }, { "Hstrok", 0x126 }, { "IEcy", 0x415 },
	{ "IJlig", 0x132 }, { "IOcy", 0x401 }, { "Iacute", 0xcd },
	{ "Icirc", 0xce }, { "Icy", 0x418 }, { "Idot", 0x130 },
	{ "Igrave", 0xcc }, { "Imacr", 0x12a }, { "Iogon", 0x12e },
	{ "Iota", 0x399 }, { "Itilde", 0x128 }, { "Iukcy", 0x406 },
	{ "Iuml", 0xcf }, { "Jcirc", 0x134 }, { "Jcy", 0x419 },
	{ "Jsercy", 0x408 }, { "Jukcy", 0x404 }, { "KHcy", 0x425 },
	{ "KJcy", 0x40c }, { "Kappa", 0x39a }, { "Kcedil", 0x136 },
	{ "Kcy", 0x41a }, { "LJcy", 0x409 }, { "LT", 0x3c },
	{ "Lacute", 0x139 }, { "Lambda", 0x39b }, { "Lcaron", 0x13d },
	{ "Lcedil", 0x13b }, { "Lcy", 0x41b }, { "Lmidot", 0x13f },
	{ "Lstrok", 0x141 }, { "Mcy", 0x41c }, { "Mu", 0x39c },
	{ "NJcy", 0x40a }, { "Nacute", 0x143 }, { "Ncaron", 0x147 },
	{ "Ncedil", 0x145 }, { "Ncy", 0x41d }, { "NewLine", 0xa },
	{ "Ntilde", 0xd1 }, { "Nu", 0x39d }, { "OElig", 0x152 },
	{ "Oacute", 0xd3 }, { "Ocirc", 0xd4 }, { "Ocy", 0x41e },
	{ "Odblac", 0x150 }, { "Ograve", 0xd2 }, { "Omacr", 0x14c },
	{ "Omega", 0x3a9 }, { "Omicron", 0x39f }, { "Oslash", 0xd8 },
	{ "Otilde", 0xd5 }, { "Ouml", 0xd6 }, { "Pcy", 0x41f },
	{ "Phi", 0x3a6 }, { "Pi", 0x3a0 }, { "Prime", 0x2033 },
	{ "Psi", 0x3a8 }, { "QUOT", 0x22 }, { "REG", 0xae },
	{ "Racute", 0x154 }, { "Rcaron", 0x158 }, { "Rcedil", 0x156 },
	{ "Rcy", 0x420 }, { "Rho", 0x3a1 }, { "SHCHcy", 0x429 },
	{ "SHcy", 0x428 }, { "SOFTcy", 0x42c }, { "Sacute", 0x15a },
	{ "Scaron", 0x160 }, { "Scedil", 0x15e }, { "Scirc", 0x15c },
	{ "Scy", 0x421 }, { "Sigma", 0x3a3 }, { "THORN", 0xde },
	{ "TSHcy", 0x40b }, { "TScy", 0x426 }, { "Tab", 0x9 },
	{ "Tau", 0x3a4 }, { "Tcaron", 0x164 }, { "Tcedil", 0x162 },
	{ "Tcy", 0x422 }, { "Theta", 0x398 }, { "Tstrok", 0x166 },
	{ "Uacute", 0xda }, { "Ubrcy", 0x40e }, { "Ubreve", 0x16c },
	{ "Ucirc", 0xdb }, { "Ucy", 0x423 }, { "Udblac", 0x170 },
	{ "Ugrave", 0xd9 }, { "Umacr", 0x16a }, { "Uogon", 0x172 },
	{ "Upsi", 0x3d2 }, { "Upsilon", 0x3a5 }, { "Uring", 0x16e },
	{ "Utilde", 0x168 }, { "Uuml", 0xdc }, { "Vcy", 0x412 },
	{ "Wcirc", 0x174 }, { "Xi", 0x39e }, { "YAcy", 0x42f },
	{ "YIcy", 0x407 }, { "YUcy", 0x42e }, { "Yacute", 0xdd },
	{ "Ycirc", 0x176 }, { "Ycy", 0x42b }, { "Yuml", 0x178 },
	{ "ZHcy", 0x416 }, { "Zacute", 0x179 }, { "Zcaron", 0x17d },
	{ "Zcy", 0x417 }, { "Zdot", 0x17b }, { "Zeta", 0x396 },
	{ "aacute", 0xe1 }, { "abreve", 0x103 }, { "acirc", 0xe2 },
	{ "acute", 0xb4 }, { "acy", 0x430 }, { "aelig", 0xe6 },
	{ "agrave", 0xe0 }, { "alefsym", 0x2135 }, { "alpha", 0x3b1 },
	{ "amacr", 0x101 }, { "amp", 0x26 }, { "and", 0x2227 },
	{ "ang", 0x2220 }, { "angst", 0xc5 }, { "aogon", 0x105 },
	{ "apos", 0x27 }, { "aring", 0xe5 }, { "ast", 0x2a },
	{ "asymp", 0x2248 }, { "atilde", 0xe3 }, { "auml", 0xe4 },
	{ "bcy", 0x431 }, { "bdquo", 0x201e }, { "beta", 0x3b2 },
	{ "brvbar", 0xa6 }, { "bsol", 0x5c }, { "bull", 0x2022 },
	{ "bullet", 0x2022 }, { "cacute", 0x107 }, { "cap", 0x2229 },
	{ "caron", 0x2c7 }, { "ccaron", 0x10d }, { "ccedil", 0xe7 },
	{ "ccirc", 0x109 }, { "cdot", 0x10b }, { "cedil", 0xb8 },
	{ "cent", 0xa2 }, { "chcy", 0x447 }, { "check", 0x2713 },
	{ "chi", 0x3c7 }, { "circ", 0x2c6 }, { "clubs", 0x2663 },
	{ "colon", 0x3a }, { "comma", 0x2c }, { "commat", 0x40 },
	{ "cong", 0x2245 }, { "copy", 0xa9 }, { "crarr", 0x21b5 },
	{ "cross", 0x2717 }, { "cup", 0x222a }, { "curren", 0xa4 },
	{ "dArr", 0x21d3 }, { "dagger", 0x2020 }, { "darr", 0x2193 },
	{ "dash", 0x2010 }, { "dcaron", 0x10f }, { "dcy", 0x434 },
	{ "deg", 0xb0 }, { "delta", 0x3b4 }, { "diams", 0x2666 },
	{ "digamma", 0x3dd }, { "divide", 0xf7 }, { "djcy", 0x452 },
	{ "dollar", 0x24 }, { "dscy", 0x455 }, { "dstrok", 0x111 },
	{ "dzcy", 0x45f }, { "eacute", 0xe9 }, { "ecaron", 0x11b },
	{ "ecirc", 0xea }, { "ecy", 0x44d }, { "edot", 0x117 },
	{ "egrave", 0xe8 }, { "emacr", 0x113 }, { "empty", 0x2205 },
	{ "emsp", 0x2003 }, { "eng", 0x14b }, { "ensp", 0x2002 },
	{ "eogon", 0x119 }, { "epsi", 0x3b5 }, { "epsilon", 0x3b5 },
	{ "epsiv", 0x3f5 }, { "equals", 0x3d }, { "equiv", 0x2261 },
	{ "eta", 0x3b7 }, { "eth", 0xf0 }, { "euml", 0xeb },
	{ "euro", 0x20ac }, { "excl", 0x21 }, { "exist", 0x2203 },
	{ "fcy", 0x444 }, { "female", 0x2640 }, { "fnof", 0x192 },
	{ "forall", 0x2200 }, { "frac12", 0xbd }, { "frac14", 0xbc },
	{ "frac34", 0xbe }, { "frasl", 0x2044 }, { "gacute", 0x1f5 },
	{ "gamma", 0x3b3 }, { "gammad", 0x3dd }, { "gbreve", 0x11f },
	{ "gcirc", 0x11d }, { "gcy", 0x433 }, { "gdot", 0x121 },
	{ "ge", 0x2265 }, { "gjcy", 0x453 }, { "grave", 0x60 }, { "gt", 0x3e },
	{ "hArr", 0x21d4 }, { "hardcy", 0x44a }, { "harr", 0x2194 },
	{ "hcirc", 0x125 }, { "hearts", 0x2665 }, { "heartsuit", 0x2665 },
	{ "hellip", 0x2026 }, { "hstrok", 0x127 }, { "hyphen", 0x2010 },
	{ "iacute", 0xed }, { "icirc", 0xee }, { "icy", 0x438 },
	{ "iecy", 0x435 }, { "iexcl", 0xa1 }, { "igrave", 0xec },
	{ "ijlig", 0x133 }, { "imacr", 0x12b }, { "image", 0x2111 },
	{ "imath", 0x131 }, { "imped", 0x1b5 }, { "infin", 0x221e },
	{ "inodot", 0x131 }, { "int", 0x222b }, { "iocy", 0x451 },
	{ "iogon", 0x12f }, { "iota", 0x3b9 }, { "iquest", 0xbf },
	{ "isin", 0x2208 }, { "itilde", 0x129 }, { "iukcy", 0x456 },
	{ "iuml", 0xef }, { "jcirc", 0x135 }, { "jcy", 0x439 },
	{ "jmath", 0x237 }, { "jsercy", 0x458 }, { "jukcy", 0x454 },
	{ "kappa", 0x3ba }, { "kappav", 0x3f0 }, { "kcedil", 0x137 },
	{ "kcy", 0x43a }, { "kgreen", 0x138 }, { "khcy", 0x445 },
	{ "kjcy", 0x45c }, { "lArr", 0x21d0 }, { "lacute", 0x13a },
	{ "lambda", 0x3bb }, { "lang", 0x2329 }, { "laquo", 0xab },
	{ "larr", 0x2190 }, { "lbrace", 0x7b }, { "lbrack", 0x5b },
	{ "lcaron", 0x13e }, { "lcedil", 0x13c }, { "lceil", 0x2308 },
	{ "lcub", 0x7b }, { "lcy", 0x43b }, { "ldquo", 0x201c },
	{ "le", 0x2264 }, { "lfloor", 0x230a }, { "ljcy", 0x459 },
	{ "lmidot", 0x140 }, { "lowast", 0x2217 }, { "lowbar", 0x5f },
	{ "loz", 0x25ca }, { "lpar", 0x28 }, { "lrm", 0x200e },
	{ "lsaquo", 0x2039 }, { "lsqb", 0x5b }, { "lsquo", 0x2018 },
	{ "lstrok", 0x142 }, { "lt", 0x3c }, { "macr", 0xaf },
	{ "male", 0x2642 }, { "mcy", 0x43c }, { "mdash", 0x2014 },
	{ "micro", 0xb5 }, { "middot", 0xb7 }, { "minus", 0x2212 },
	{ "mu", 0x3bc }, { "nabla", 0x2207 }, { "nacute", 0x144 },
	{ "napos", 0x149 }, { "nbsp", 0xa0 }, { "ncaron", 0x148 },
	{ "ncedil", 0x146 }, { "ncy", 0x43d }, { "ndash", 0x2013 },
	{ "ne", 0x2260 }, { "ni", 0x220b }, { "njcy", 0x45a }, { "not", 0xac },
	{ "notin", 0x2209 }, { "nsub", 0x2284 }, { "ntilde", 0xf1 },
	{ "nu", 0x3bd }, { "num", 0x23 }, { "numero", 0x2116 },
	{ "oacute", 0xf3 }, { "ocirc", 0xf4 }, { "ocy", 0x43e },
	{ "odblac", 0x151 }, { "oelig", 0x153 }, { "ograve", 0xf2 },
	{ "ohm", 0x3a9 }, { "oline", 0x203e }, { "omacr", 0x14d },
	{ "omega", 0x3c9 }, { "omicron", 0x3bf }, { "oplus", 0x2295 },
	{ "or", 0x2228 }, { "ordf", 0xaa }, { "ordm", 0xba },
	{ "oslash", 0xf8 }, { "otilde", 0xf5 }, { "otimes", 0x2297 },
	{ "ouml", 0xf6 }, { "para", 0xb6 }, { "part", 0x2202 },
	{ "pcy", 0x43f }, { "percnt", 0x25 }, { "period", 0x2e },
	{ "permil", 0x2030 }, { "perp", 0x22a5 }, { "phi", 0x3c6 },
	{ "phiv", 0x3d5 }, { "phone", 0x260e }, { "pi", 0x3c0 },
	{ "piv", 0x3d6 }, { "plus", 0x2b }, { "plusmn", 0xb1 },
	{ "pound", 0xa3 }, { "prime", 0x2032 }, { "prod", 0x220f },
	{ "prop", 0x221d }, { "psi", 0x3c8 }, { "quest", 0x3f },
	{ "quot", 0x22 }, { "rArr", 0x21d2 }, { "racute", 0x155 },
	{ "radic", 0x221a }, { "rang", 0x232a }, { "raquo", 0xbb },
	{ "rarr", 0x2192 }, { "rbrace", 0x7d }, { "rbrack", 0x5d },
	{ "rcaron", 0x159 }, { "rcedil", 0x157 }, { "rceil", 0x2309 },
	{ "rcub", 0x7d }, { "rcy", 0x440 }, { "rdquo", 0x201d },
	{ "real", 0x211c }, { "reg", 0xae }, { "rfloor", 0x230b },
	{ "rho", 0x3c1 }, { "rhov", 0x3f1 }, { "rlm", 0x200f },
	{ "rpar", 0x29 }, { "rsaquo", 0x203a }, { "rsqb", 0x5d },
	{ "rsquo", 0x2019 }, { "sacute", 0x15b }, { "sbquo", 0x201a },
	{ "scaron", 0x161 }, { "scedil", 0x15f }, { "scirc", 0x15d },
	{ "scy", 0x441 }, { "sdot", 0x22c5 }, { "sect", 0xa7 },
	{ "semi", 0x3b }, { "shchcy", 0x449 }, { "shcy", 0x448 },
	{ "shy", 0xad }, { "sigma", 0x3c3 }, { "sigmaf", 0x3c2 },
	{ "sigmav", 0x3c2 }, { "sim", 0x223c }, { "softcy", 0x44c },
	{ "sol", 0x2f }, { "spades", 0x2660 }, { "star", 0x2606 },
	{ "starf", 0x2605 }, { "straightepsilon", 0x3f5 },
	{ "straightphi", 0x3d5 }, { "sub", 0x2282 }, { "sube", 0x2286 },
	{ "sum", 0x2211 }, { "sup", 0x2283 }, { "sup1", 0xb9 },
	{ "sup2", 0xb2 }, { "sup3", 0xb3 }, { "supe", 0x2287 },
	{ "szlig", 0xdf }, { "tau", 0x3c4 }, { "tcaron", 0x165 },
	{ "tcedil", 0x163 }, { "tcy", 0x442 }, { "telrec", 0x2315 },
	{ "there4", 0x2234 }, { "theta", 0x3b8 }, { "thetasym", 0x3d1 },
	{ "thetav", 0x3d1 }, { "thinsp", 0x2009 }, { "thorn", 0xfe },
	{ "tilde", 0x2dc }, { "times", 0xd7 }, { "trade", 0x2122 },
	{ "tscy", 0x446 }, { "tshcy", 0x45b }, { "tstrok", 0x167 },
	{ "uArr", 0x21d1 }, { "uacute", 0xfa }, { "uarr", 0x2191 },
	{ "ubrcy", 0x45e }, { "ubreve", 0x16d }, { "ucirc", 0xfb },
	{ "ucy", 0x443 }, { "udblac", 0x171 }, { "ugrave", 0xf9 },
	{ "umacr", 0x16b }, { "uml", 0xa8 }, { "uogon", 0x173 },
	{ "upsi", 0x3c5 }, { "upsih", 0x3d2 }, { "upsilon", 0x3c5 },
	{ "uring", 0x16f }, { "utilde", 0x169 }, { "uuml", 0xfc },
	{ "varepsilon", 0x3f5 }, { "varkappa", 0x3f0 }, { "varphi", 0x3d5 },
	{ "varpi", 0x3d6 }, { "varrho", 0x3f1 }, { "varsigma", 0x3c2 },
	{ "vartheta", 0x3d1 }, { "vcy", 0x432 }, { "verbar", 0x7c },
	{ "vert", 0x7c }, { "wcirc", 0x175 }, { "weierp", 0x2118 },
	{ "xi", 0x3be }, { "yacute", 0xfd }, { "yacy", 0x44f },
	{ "ycirc", 0x177 }, { "ycy", 0x44b }, { "yen", 0xa5 },
	{ "yicy", 0x457 }, { "yucy", 0x44e }, { "yuml", 0xff },
	{ "zacute", 0x17a }, { "zcaron", 0x17e }, { "zcy", 0x437 },
	{ "zdot", 0x17c }, { "zeta", 0x3b6 }, { "zhcy", 0x436 },
	{ "zwj", 0x200d }, { "zwnj", 0x200c },
};

struct key {
	const char *ptr;
	size_t len;
};

static int
compare(const void *a, const void *b)
{
	const struct key *key = a;
	const struct entity *e = b;
	return str_cmp(str_of(key->ptr, key->len), str_c(e->name));
}

uint32_t
entity_find(struct str name)
{
	struct key key = { name.ptr, name.len };
	const struct entity *e = bsearch(&key, entities,
	    sizeof entities / sizeof *entities, sizeof *entities, compare);
	return e != NULL ? e->cp : 0;
}

uint32_t
entity_number(uint32_t cp)
{
	/* 0x80 to 0x9f; zeros are controls there, too */
	static const uint16_t windows_1252[32] = { 0x20ac, 0, 0x201a, 0x192,
		0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039,
		0x152, 0, 0x17d, 0, 0, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
		0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0, 0x17e,
		0x178 };
	if (cp < 0x80 || cp > 0x9f)
		return cp;
	return windows_1252[cp - 0x80] != 0 ? windows_1252[cp - 0x80] : ' ';
}

size_t
entity_count(void)
{
	return sizeof entities / sizeof *entities;
}

const char *
entity_name(size_t i)
{
	return entities[i].name;
}
