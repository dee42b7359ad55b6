import type { OutputFormat } from './options.ts';

/** A value as a program reads it. */
export async function formatted(value: unknown, format: Exclude<OutputFormat, 'text' | 'name'>): Promise<string> {
  if (format === 'json') return JSON.stringify(value, undefined, 2);
  const { dump } = await import('js-yaml');
  return dump(value, { lineWidth: -1 }).trimEnd();
}
