// The browser of the system, or of $CHROMIUM, for what looks at pages: `npm install --no-save playwright-core` first.
import { chromium } from "playwright-core";

export const open = () =>
  chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"],
  });
