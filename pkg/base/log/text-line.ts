interface Line {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/**
 * A line of JSON for people: `TIME LEVEL  message key=value …`. Whatever a value holds, it stays in that line; only a stack, which is
 * written from `--v=4` on, follows in lines of its own.
 */
export function textLine(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as Line; // pino's
  const stacks: string[] = [];
  const words = Object.entries(fields).flatMap(([key, value]) => wordsOf(key, value, stacks));
  const line = [time, level.toUpperCase().padEnd(5), msg, ...words].join(' ');
  return `${[line, ...stacks].join('\n')}\n`;
}

/** An error is its message, with its code; everything else one word. */
function wordsOf(key: string, value: unknown, stacks: string[]): string[] {
  if (!isLoggedError(value)) return [`${key}=${wordOf(value)}`];
  const { message, code, stack } = value;
  if (typeof stack === 'string') stacks.push(stack);
  return [`${key}=${wordOf(message)}`, ...(code === undefined ? [] : [`${key}.code=${wordOf(code)}`])];
}

function isLoggedError(value: unknown): value is { message: string; code?: unknown; stack?: unknown } {
  return typeof value === 'object' && value !== null && 'type' in value && 'message' in value;
}

function wordOf(value: unknown): string {
  return typeof value === 'string' && /^[\w./:@+,-]+$/.test(value) ? value : JSON.stringify(value);
}
