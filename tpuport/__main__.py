"""`python -m tpuport`."""

from tpuport.cli.app import main

if __name__ == "__main__":
    main()
