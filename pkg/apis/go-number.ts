/** Numbers as Go's strconv reads them from flags. */

const INT = /^([+-]?)(?:0[xX]((?:_?[0-9a-fA-F])+)|0[bB]((?:_?[01])+)|0[oO]?((?:_?[0-7])+)|([1-9](?:_?[0-9])*|0))$/;
const DECIMAL = /^[+-]?[0-9]+$/;
const HEX_FLOAT = /^([+-]?)0[xX]([0-9a-fA-F]*)(?:[.]([0-9a-fA-F]*))?[pP]([+-]?[0-9]+)$/;
const DECIMAL_FLOAT = /^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$/;

/**
 * Parses what strconv.ParseInt accepts with base 0: `0x1f`, `0b101`, `0o17`, `017` and `1_000` too; and `08`, which klog's
 * levels take for a decimal number. Undefined for everything else.
 */
export function parseGoInt(text: string): number | undefined {
  const [, sign = '', hex, binary, octal, decimal] = INT.exec(text) ?? [];
  const digits = (hex ?? binary ?? octal ?? decimal)?.replaceAll('_', '');
  if (digits === undefined) return DECIMAL.test(text) ? Number(text) : undefined;
  const base = hex === undefined ? (binary === undefined ? (octal === undefined ? 10 : 8) : 2) : 16;
  const value = Number.parseInt(digits, base);
  return sign === '-' ? -value || 0 : value;
}

/** Parses what strconv.ParseFloat accepts: `1e3`, `0x1p-2`, `inf` and `nan` too. Undefined for everything else. */
export function parseGoFloat(text: string): number | undefined {
  if (DECIMAL_FLOAT.test(text)) return Number(text);
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith('-') ? -Infinity : Infinity;
  if (/^[+-]?nan$/i.test(text)) return Number.NaN;
  const [, sign, whole = '', fraction = '', exponent] = HEX_FLOAT.exec(text) ?? [];
  if (exponent === undefined || whole + fraction === '') return undefined;
  const size = Number.parseInt(whole + fraction, 16) * 2 ** (Number(exponent) - 4 * fraction.length);
  return sign === '-' ? -size : size;
}
