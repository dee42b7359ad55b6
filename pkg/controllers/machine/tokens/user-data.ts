/** What stands in user data for the bootstrap token and the Machine's name. Part of the contract with operators. */
const TOKEN = '<<BOOTSTRAP_TOKEN>>';
const MACHINE_NAME = '<<MACHINE_NAME>>';

export interface UserDataValues {
  readonly machineName: string;
  /** `id.secret`; left out when the user data has no place for one. */
  readonly token?: string;
}

/** Whether this user data has a place for a bootstrap token, plain or URL-escaped. */
export function requiresToken(userData: Uint8Array): boolean {
  const text = asText(userData);
  return text.includes(TOKEN) || text.includes(escape(TOKEN));
}

/**
 * User data with its placeholders replaced. Each placeholder may stand plain, or URL-query-escaped (then its value is
 * escaped too); where both forms occur only the plain one is replaced, as in the original. Other bytes stay as they are.
 */
export function fillUserData(userData: Uint8Array, { machineName, token }: UserDataValues): Uint8Array {
  let text = asText(userData);
  if (token !== undefined) text = replace(text, TOKEN, token);
  text = replace(text, MACHINE_NAME, machineName);
  return Uint8Array.from(Buffer.from(text, 'latin1'));
}

function replace(text: string, placeholder: string, value: string): string {
  if (text.includes(placeholder)) return text.replaceAll(placeholder, () => value);
  return text.replaceAll(escape(placeholder), () => escape(value));
}

/** One character a byte, so that compressed or multi-byte user data survives unchanged. */
function asText(userData: Uint8Array): string {
  return Buffer.from(userData).toString('latin1');
}

function escape(text: string): string {
  return encodeURIComponent(text).replaceAll('%20', '+');
}
