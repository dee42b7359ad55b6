import { DriverError } from '../driver/error.ts';
import { withoutSecrets } from '../driver/without-secrets.ts';

/**
 * Runs a call whose failures `failureOf` makes those of the provider; what is no DriverError is thrown as it is. A provider's words may
 * repeat what it was sent: nothing of the Secret leaves the driver.
 */
export async function reportingFailures<T>(
  secretData: Readonly<Record<string, Uint8Array>>,
  failureOf: (err: unknown) => unknown,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (err) {
    const error = failureOf(err);
    if (!(error instanceof DriverError)) throw error;
    const { code, lastKnownState, retryAfterMs, terminal, result } = error;
    throw new DriverError(code, withoutSecrets(error.detail, secretData), {
      terminal,
      ...(lastKnownState === undefined ? {} : { lastKnownState: withoutSecrets(lastKnownState, secretData) }),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(result === undefined ? {} : { result }),
      cause: error,
    });
  }
}
