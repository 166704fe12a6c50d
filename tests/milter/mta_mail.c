#include "mta_mail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void
fail(const char *path, const char *what)
{
	fprintf(stderr, "mta: %s: %s\n", path, what);
	exit(2);
}

static char *
read_whole(const char *path, size_t *out_len)
{
	FILE *f = fopen(path, "re");
	size_t cap = 1 << 16, len = 0, n;
	char *p = malloc(cap);
	if (f == NULL || p == NULL)
		fail(path, "cannot be read");
	while ((n = fread(p + len, 1, cap - len - 1, f)) > 0) {
		len += n;
		if (len + 1 == cap && (p = realloc(p, cap *= 2)) == NULL)
			fail(path, "no memory");
	}
	fclose(f);
	p[len] = '\0';
	*out_len = len;
	return p;
}

static size_t
without_cr(char *p, size_t len)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		if (p[i] != '\r' || i + 1 == len || p[i + 1] != '\n')
			p[n++] = p[i];
	p[n] = '\0';
	return n;
}

static void
set_body(struct mail *m, const char *path, const char *p, size_t len)
{
	m->body = malloc(2 * len + 2);
	if (m->body == NULL)
		fail(path, "no memory");
	for (size_t i = 0; i < len; i++) {
		if (p[i] == '\n')
			m->body[m->body_len++] = '\r';
		m->body[m->body_len++] = p[i];
	}
}

void
mail_read(const char *path, struct mail *out)
{
	size_t len;
	char *p = read_whole(path, &len), *end;
	*out = (struct mail){ .field_count = 0 };
	len = without_cr(p, len);
	end = p + len;
	while (p < end && *p != '\n') {
		char *colon = strchr(p, ':'), *stop = strchr(p, '\n');
		while (stop != NULL && (stop[1] == ' ' || stop[1] == '\t'))
			stop = strchr(stop + 1, '\n');
		if (colon == NULL || stop == NULL || colon > stop ||
		    out->field_count == MAIL_MAX_FIELDS)
			fail(path, "is no message");
		*colon = *stop = '\0';
		out->fields[out->field_count++] =
		    (struct mail_field){ p, colon + 1 };
		p = stop + 1;
	}
	if (p < end)
		p++;
	set_body(out, path, p, (size_t)(end - p));
}

static void
insert(struct mail *m, size_t at, const char *name, const char *value)
{
	if (at > m->field_count)
		at = m->field_count;
	memmove(&m->fields[at + 1], &m->fields[at],
	    (m->field_count - at) * sizeof *m->fields);
	m->fields[at] = (struct mail_field){ name, value };
	m->field_count++;
}

/* The n-th field of a name, from 1; field_count when there is none. */
static size_t
find(const struct mail *m, const char *name, uint32_t n)
{
	for (size_t i = 0; i < m->field_count; i++)
		if (strcasecmp(m->fields[i].name, name) == 0 && --n == 0)
			return i;
	return m->field_count;
}

static void
change(struct mail *m, uint32_t n, const char *name, const char *value)
{
	size_t at = find(m, name, n != 0 ? n : 1);
	if (at == m->field_count && *value != '\0')
		insert(m, at, name, value);
	else if (at < m->field_count && *value != '\0')
		m->fields[at].value = value;
	else if (at < m->field_count) {
		m->field_count--;
		memmove(&m->fields[at], &m->fields[at + 1],
		    (m->field_count - at) * sizeof *m->fields);
	}
}

bool
mail_edit(struct mail *m, char code, const char *data, size_t len,
    const char **out_name, const char **out_value)
{
	uint32_t index = 0;
	if (code != 'h') {
		if (len < 4)
			return false;
		for (int i = 0; i < 4; i++)
			index = index << 8 | (unsigned char)data[i];
		data += 4;
		len -= 4;
	}
	size_t name_len = strnlen(data, len);
	if (name_len + 1 >= len || data[len - 1] != '\0' ||
	    m->field_count == MAIL_MAX_FIELDS ||
	    m->owned_count == MAIL_MAX_EDITS)
		return false;
	char *copy = malloc(len);
	if (copy == NULL)
		return false;
	memcpy(copy, data, len);
	m->owned[m->owned_count++] = copy;
	*out_name = copy;
	*out_value = copy + name_len + 1;
	switch (code) {
	case 'i':
		insert(m, index, *out_name, *out_value);
		return true;
	case 'h':
		insert(m, m->field_count, *out_name, *out_value);
		return true;
	case 'm':
		change(m, index, *out_name, *out_value);
		return true;
	default:
		return false;
	}
}

void
mail_forget(struct mail *m)
{
	while (m->owned_count > 0)
		free(m->owned[--m->owned_count]);
}

static void
write_crlf(FILE *f, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\n')
			putc('\r', f);
		putc(*text, f);
	}
}

void
mail_write(const struct mail *m, const char *path)
{
	FILE *f = fopen(path, "we");
	if (f == NULL)
		fail(path, "cannot be written");
	for (size_t i = 0; i < m->field_count; i++) {
		fprintf(f, "%s:", m->fields[i].name);
		write_crlf(f, m->fields[i].value);
		fputs("\r\n", f);
	}
	fputs("\r\n", f);
	fwrite(m->body, 1, m->body_len, f);
	if (fclose(f) != 0)
		fail(path, "cannot be written");
}
