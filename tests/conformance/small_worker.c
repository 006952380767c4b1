/* A worker in plain C: the wire is not Python's. It reads strictly, says hello, starts, answers pings, fails every call, stops when told.
 *
 *   cc -O1 -o small_worker small_worker.c && python -m conformance --command ./small_worker
 *
 * The channel is the descriptor LINEUP_CHANNEL_FD. With an argument it breaks one rule of how a worker begins (see `breaks`).
 * Rules: 1. What the wire does not admit ends the process (SPEC 2.1, 2.2). 2. Nothing is obeyed before the whole frame was checked.
 */
#include <math.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_FRAME (1024 * 1024)
#define MAX_INTEGER 9007199254740991ULL
#define MAX_DEPTH 16
#define MAX_FIELDS 24

enum kind { UINT, NINT, BYTES, TEXT, ARRAY, MAP, FLOAT, BOOL, NIL };
struct item { enum kind kind; uint64_t number; const uint8_t *data; };
struct field { const uint8_t *key; uint64_t key_size; struct item value; };
struct reader { const uint8_t *at, *end; };

static int channel;
static const char *breaks = "";
static uint64_t owed[64], next_id = 1;
static int owed_count;

static void broken(const char *why) { fprintf(stderr, "wire: %s\n", why); exit(75); }
static int is_villain(const char *name) { return strcmp(breaks, name) == 0; }

/* --- reading one strict item */

static uint64_t take(struct reader *r, int size) {
    uint64_t value = 0;
    if (r->end - r->at < size) broken("cut off");
    for (int i = 0; i < size; i++) value = value << 8 | *r->at++;
    return value;
}

static void check_text(const uint8_t *s, uint64_t size) {
    for (uint64_t i = 0; i < size;) {
        int more = s[i] < 0x80 ? 0 : s[i] >= 0xc2 && s[i] < 0xe0 ? 1 : s[i] >= 0xe0 && s[i] < 0xf0 ? 2 : s[i] >= 0xf0 && s[i] < 0xf5 ? 3 : -1;
        if (more < 0 || i + (uint64_t)more >= size) { if (more) broken("not UTF-8"); }
        for (int k = 1; k <= more; k++)
            if ((s[i + (uint64_t)k] & 0xc0) != 0x80) broken("not UTF-8");
        if ((s[i] == 0xe0 && s[i + 1] < 0xa0) || (s[i] == 0xed && s[i + 1] > 0x9f) || (s[i] == 0xf0 && s[i + 1] < 0x90) ||
            (s[i] == 0xf4 && s[i + 1] > 0x8f)) broken("not UTF-8");
        i += (uint64_t)more + 1;
    }
}

static void check_float(uint64_t bits, int size) {
    double value;
    if (size == 2) {
        int exponent = bits >> 10 & 31;
        if (exponent == 31) broken("not finite");
        return; /* the largest half is 65504 */
    }
    if (size == 4) { uint32_t narrow = (uint32_t)bits; float single; memcpy(&single, &narrow, 4); value = single; }
    else memcpy(&value, &bits, 8);
    if (!isfinite(value)) broken("not finite");
    if (value == floor(value) && fabs(value) > (double)MAX_INTEGER) broken("too large");
}

static void check_inside(struct reader *r, struct item of, int depth);

static struct item read_item(struct reader *r, int depth) {
    uint8_t first = (uint8_t)take(r, 1), major = first >> 5, info = first & 31;
    struct item item = {NIL, 0, r->at};
    if (major == 6) broken("tag");
    if (major == 7) {
        if (info == 20 || info == 21) { item.kind = BOOL; item.number = info == 21; }
        else if (info == 22) item.kind = NIL;
        else if (info >= 25 && info <= 27) {
            item.kind = FLOAT;
            check_float(item.number = take(r, 1 << (info - 24)), 1 << (info - 24));
        } else broken("simple value or break");
        return item;
    }
    if (info > 27) broken("indefinite or reserved");
    item.number = info < 24 ? info : take(r, 1 << (info - 24));
    item.data = r->at;
    item.kind = (enum kind)major;
    if (major < 2) {
        if (item.number > MAX_INTEGER - (major == 1)) broken("integer range");
        return item;
    }
    if (item.number > (uint64_t)(r->end - r->at)) broken("longer than the frame");
    if (major < 4) {
        if (item.kind == TEXT) check_text(item.data, item.number);
        r->at += item.number;
        return item;
    }
    if (depth >= MAX_DEPTH) broken("depth");
    check_inside(r, item, depth + 1);
    return item;
}

static void check_inside(struct reader *r, struct item of, int depth) {
    struct reader before = {of.data, r->end};
    for (uint64_t n = 0; n < of.number; n++) {
        if (of.kind == MAP) {
            struct item key = read_item(r, depth);
            if (key.kind != TEXT) broken("key");
            struct reader again = before;
            for (uint64_t m = 0; m < n; m++) { /* every key before this one */
                struct item other = read_item(&again, depth);
                if (other.number == key.number && memcmp(other.data, key.data, key.number) == 0) broken("key twice");
                read_item(&again, depth);
            }
        }
        read_item(r, depth);
    }
}

/* Split a checked map into its fields; returns how many. */
static int fields_of(struct item map, const uint8_t *end, struct field *fields) {
    struct reader r = {map.data, end};
    if (map.kind != MAP || map.number > MAX_FIELDS) broken("fields");
    for (uint64_t n = 0; n < map.number; n++) {
        struct item key = read_item(&r, 1);
        fields[n] = (struct field){key.data, key.number, read_item(&r, 1)};
    }
    return (int)map.number;
}

static struct item *find(struct field *fields, int count, const char *name) {
    for (int n = 0; n < count; n++)
        if (fields[n].key_size == strlen(name) && memcmp(fields[n].key, name, fields[n].key_size) == 0) return &fields[n].value;
    return NULL;
}

static int is_text(const struct item *item, const char *text) {
    return item && item->kind == TEXT && item->number == strlen(text) && memcmp(item->data, text, item->number) == 0;
}

/* --- what a kernel may say: fields by kind (s text, i integer, m map, b bytes, t boolean, a array), `?` before what may be missing */

static const struct { const char *type, *fields; } MESSAGES[] = {
    {"chunk", "s:of b:data t:last"},
    {"context.changed", "s:state"},
    {"inbox.delivered", "s:message_id s:topic m:body i:delivery_count"},
    {"interaction.presented", "s:interaction_id s:kind s:title s:place"},
    {"lifecycle.stopping", "s:reason i:deadline_ms"},
    {"ping", "i:n"},
    {"reply", "i:id ?m:value ?m:receipt"},
    {"surface.changed", "i:version"},
    {"timeline.changed", "a:changes"},
    {"tool.called", "s:call_id s:tool_id m:input i:attempts ?i:time_left_ms"},
    {"tool.cancel_requested", "s:call_id i:grace_ms"},
    {"tool.ended", "s:call_id s:status"},
    {"ui.changed", "s:interaction_id s:status"},
    {"welcome", "i:wire s:epoch m:context ?m:source"},
};

static int fits(const struct item *value, char kind) {
    switch (kind) {
    case 's': return value->kind == TEXT;
    case 'i': return value->kind == UINT || value->kind == NINT;
    case 'm': return value->kind == MAP;
    case 'b': return value->kind == BYTES;
    case 't': return value->kind == BOOL;
    default: return value->kind == ARRAY;
    }
}

static void check_fields(const char *shape, struct field *fields, int count) {
    int known = 1; /* type */
    char copy[128], *rest = copy;
    strcpy(copy, shape);
    for (char *word; (word = strsep(&rest, " "));) {
        int may_miss = *word == '?';
        word += may_miss;
        struct item *value = find(fields, count, word + 2);
        if (!value && !may_miss) broken("missing field");
        if (value && !fits(value, *word)) broken("field of another kind");
        known += value != NULL;
    }
    if (known != count && !is_villain("any-field")) broken("field that does not belong there");
}

/* --- speaking */

static size_t put_head(uint8_t *out, int major, uint64_t number) {
    int size = number < 24 ? 0 : number < 256 ? 1 : number < 65536 ? 2 : number < 1ULL << 32 ? 4 : 8;
    out[0] = (uint8_t)(major << 5 | (size == 0 ? (int)number : size == 1 ? 24 : size == 2 ? 25 : size == 4 ? 26 : 27));
    for (int n = 0; n < size; n++) out[1 + n] = (uint8_t)(number >> 8 * (size - 1 - n));
    return 1 + (size_t)size;
}

static size_t put_text(uint8_t *out, const void *text, uint64_t size) {
    size_t head = put_head(out, TEXT, size);
    memcpy(out + head, text, size);
    return head + size;
}

/* One frame: pairs of a key and a text (size >= 0) or a number (size < 0). */
struct pair { const char *key; const void *text; int64_t size; uint64_t number; int is_negative; };

static void say(const char *type, const struct pair *pairs, int count) {
    static uint8_t out[4096];
    size_t size = 4;
    size += put_head(out + size, MAP, (uint64_t)count + 1);
    size += put_text(out + size, "type", 4);
    size += put_text(out + size, type, strlen(type));
    for (int n = 0; n < count; n++) {
        size += put_text(out + size, pairs[n].key, strlen(pairs[n].key));
        if (pairs[n].size < 0) size += put_head(out + size, pairs[n].is_negative ? NINT : UINT, pairs[n].number);
        else size += put_text(out + size, pairs[n].text, (uint64_t)pairs[n].size);
    }
    for (int n = 0; n < 4; n++) out[n] = (uint8_t)((size - 4) >> 8 * (3 - n));
    for (size_t sent = 0; sent < size;) {
        ssize_t now = write(channel, out + sent, size - sent);
        if (now <= 0) exit(0);
        sent += (size_t)now;
    }
}

static void request(const char *type, const char *key, const struct item *text, const char *reason) {
    struct pair pairs[3] = {{"id", NULL, -1, next_id, 0}};
    int count = 1;
    if (key) pairs[count++] = (struct pair){key, text->data, (int64_t)text->number, 0, 0};
    if (reason) pairs[count++] = (struct pair){"reason", reason, (int64_t)strlen(reason), 0, 0};
    if (owed_count == 64) broken("too much owed");
    owed[owed_count++] = next_id++;
    say(type, pairs, count);
}

static void hello(void) {
    struct pair pairs[] = {{"wire", NULL, -1, is_villain("other-wire") ? 2 : 1, 0}, {"sdk", "small-c", is_villain("no-sdk") ? 0 : 7, 0, 0}};
    struct pair line[] = {{"stream", "log", 3, 0, 0}, {"text", "early\n", 6, 0, 0}};
    if (is_villain("no-hello")) say("log.write", line, 2);
    say("hello", pairs, 2);
    if (is_villain("talks-early")) say("log.write", line, 2);
}

/* --- obeying */

static void check_state(const struct item *state) {
    static const char *STATES[] = {"background", "foreground", "starting", "suspended"};
    for (int n = 0; n < 4; n++)
        if (is_text(state, STATES[n])) return;
    broken("state");
}

static void begin(struct field *fields, int count, const uint8_t *end) {
    static const char *NAMES[] = {"app_scope", "app_version", "conversation_id", "instance_id", "state"};
    struct field context[MAX_FIELDS];
    int size = fields_of(*find(fields, count, "context"), end, context), known = 0;
    if (find(fields, count, "wire")->number != 1) broken("version of the wire");
    for (int n = 0; n < 5; n++) {
        struct item *value = find(context, size, NAMES[n]);
        if (!value || value->kind != TEXT) broken("context");
        known++;
    }
    if (size != known + (find(context, size, "mode") != NULL)) broken("context");
    check_state(find(context, size, "state"));
    request("tools.subscribe", NULL, NULL, NULL);
    request("lifecycle.started", NULL, NULL, NULL);
}

static void settle(struct field *fields, int count, const uint8_t *end) {
    struct item *id = find(fields, count, "id"), *receipt = find(fields, count, "receipt");
    struct field inside[MAX_FIELDS];
    int n = 0;
    while (n < owed_count && owed[n] != id->number) n++;
    if (n == owed_count || id->kind != UINT) broken("a reply to nothing");
    owed[n] = owed[--owed_count];
    if (!receipt || find(fields, count, "value")) broken("a reply that is no receipt");
    int size = fields_of(*receipt, end, inside);
    struct item *accepted = find(inside, size, "accepted"), *code = find(inside, size, "code");
    if (!accepted || accepted->kind != BOOL) broken("a receipt that says nothing");
    if (!accepted->number && (!code || code->kind != TEXT)) broken("a refusal without a code");
}

static void obey(const uint8_t *body, uint32_t size) {
    static int has_begun;
    struct reader r = {body, body + size};
    struct field fields[MAX_FIELDS];
    struct item frame = read_item(&r, 0);
    if (r.at != r.end) broken("trailing bytes");
    int count = fields_of(frame, r.end, fields);
    struct item *type = find(fields, count, "type");
    const char *name = NULL;
    for (size_t n = 0; n < sizeof MESSAGES / sizeof *MESSAGES; n++)
        if (is_text(type, MESSAGES[n].type)) { name = MESSAGES[n].type; check_fields(MESSAGES[n].fields, fields, count); }
    if (!name || strcmp(name, "chunk") == 0) broken("type");
    if ((strcmp(name, "welcome") == 0) == has_begun && !is_villain("any-first")) broken("out of turn");
    if (strcmp(name, "welcome") == 0) { has_begun = 1; begin(fields, count, r.end); }
    if (strcmp(name, "reply") == 0) settle(fields, count, r.end);
    if (strcmp(name, "context.changed") == 0) check_state(find(fields, count, "state"));
    if (strcmp(name, "lifecycle.stopping") == 0) exit(0);
    if (strcmp(name, "ping") == 0) {
        struct item *n = find(fields, count, "n");
        struct pair pong[] = {{"n", NULL, -1, n->number, n->kind == NINT}};
        say("pong", pong, 1);
    }
    if (strcmp(name, "tool.called") == 0) {
        request("tool.accept", "call_id", find(fields, count, "call_id"), NULL);
        request("tool.fail", "call_id", find(fields, count, "call_id"), "no_tool");
    }
}

int main(int count, char **arguments) {
    static uint8_t buffer[MAX_FRAME + 4];
    size_t held = 0;
    breaks = count > 1 ? arguments[1] : "";
    channel = atoi(getenv("LINEUP_CHANNEL_FD"));
    hello();
    struct pollfd waiting = {channel, POLLIN, 0};
    if (is_villain("impatient") && poll(&waiting, 1, 250) == 0) return 1;
    for (;;) {
        ssize_t now = read(channel, buffer + held, sizeof buffer - held);
        if (now <= 0) return held ? 75 : 0;
        held += (size_t)now;
        while (held >= 4) {
            uint32_t size = (uint32_t)buffer[0] << 24 | (uint32_t)buffer[1] << 16 | (uint32_t)buffer[2] << 8 | buffer[3];
            if (size == 0 || size > MAX_FRAME) broken("frame size");
            if (held < size + 4) break;
            obey(buffer + 4, size);
            memmove(buffer, buffer + 4 + size, held - 4 - size);
            held -= 4 + size;
        }
        if (is_villain("one-read")) held = 0;
    }
}
