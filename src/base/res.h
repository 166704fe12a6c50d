/* How a function says that it could not do its work. Results of the mail
 * world (pass, fail, temperror, …) are other enums: a signature that does not
 * verify is not an error.
 *
 * Every function returning `enum res` is marked HN_CHECK. On anything but
 * RES_OK, output parameters are untouched unless the header says otherwise. */
#ifndef BASE_RES_H
#define BASE_RES_H

#define HN_CHECK __attribute__((warn_unused_result))
#define HN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

enum res {
	RES_OK = 0,
	RES_NOMEM,       /* out of memory */
	RES_LIMIT,       /* a named maximum was reached */
	RES_SYNTAX,      /* the input does not follow its grammar */
	RES_IO,          /* the operating system refused; errno says why */
	RES_AGAIN,       /* not now: try later */
	RES_NOTFOUND,    /* no such thing */
	RES_EXISTS,      /* already there */
	RES_DENIED,      /* not allowed */
	RES_UNSUPPORTED, /* well-formed but not something we can do */
	RES_CORRUPT,     /* stored data is damaged */
	RES_INVALID,     /* a value outside its range, or a call out of order */
	RES_TIMEOUT,     /* the deadline passed */
};

/* A short lower-case phrase for `r`, never NULL. */
const char *res_text(enum res r);

#endif
